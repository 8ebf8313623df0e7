"""The pin of a link at its target: an object that names the link. A bucket that was recreated empty, or the place of
another link, has not got it, and nothing is written there before somebody confirms.

A link that never had a pin writes one before it first writes anything. Looked at right before the first write of each
round; who looks knows no database.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass

from adapters.places.reader import PlaceReader
from adapters.places.state import StatePlace
from core.bringing import Side, Unbrought
from core.errors import LakeMirrorError, NotFound

PIN = "target.json"
MISSING = "the pin of this link is gone from {uri}: its bucket may have been deleted and created anew"
OTHERS = "the pin at {uri} is that of another link, {whose}"


class StaleTarget(LakeMirrorError):
    """The target is not the one that was pinned."""


@dataclass(frozen=True, slots=True)
class PinTold:
    """What a pin says: the link's identity and name, and the mark of the deployment; the name of its file, and whether
    it was ever written."""

    identity: str
    name: str
    mark: str
    file: str = PIN
    pinned: bool = False


class Pin:
    """The pin of a link, asked for once in a round. Safe to use from several threads."""

    def __init__(self, told: PinTold, target: PlaceReader, place: StatePlace) -> None:
        self._told, self._target, self._place = told, target, place
        self._lock = threading.Lock()
        self._seen = False
        self.of_another = ""
        """The identity of another link of this deployment, or of one that is gone, whose pin is there; "": no such."""
        self.stale = ""
        """Why nothing may be written; "" as far as is known it may."""

    @property
    def seen(self) -> bool:
        """Whether the target has it."""
        return self._seen

    def check(self) -> None:
        """Return if the target has it. Raises StaleTarget, and Unbrought for what its store answers."""
        with self._lock:
            if self.stale:
                raise StaleTarget(self.stale)
            if self._seen:
                return
            try:
                self._look()
            except StaleTarget:
                raise
            except LakeMirrorError as error:
                raise Unbrought(Side.DESTINATION, error) from error

    def is_there(self) -> bool:
        """Whether the target has it, as far as it can be asked; writes nothing."""
        try:
            return _read(self._place.read(self._told.file))[0] == self._told.identity
        except LakeMirrorError:
            return False

    def _look(self) -> None:
        uri = self._place.uri(self._told.file)
        try:
            found, whose, mark = _read(self._place.read(self._told.file))
        except NotFound:
            self._target.answers()  # else it is the bucket that is not there
            found, whose, mark = "", "", ""
        if found != self._told.identity:
            if found or self._told.pinned:
                self.of_another = found if mark == self._told.mark else ""
                text = OTHERS.format(uri=uri, whose=whose) if found else MISSING.format(uri=uri)
                self.stale = text
                raise StaleTarget(text)
            self.write()
        self._seen = True

    def write(self) -> None:
        """Pin the target. Raises what its store answers."""
        told = {"link": self._told.identity, "name": self._told.name, "by": self._told.mark}
        told["what"] = "LakeMirror copies to this place, and recognises it by this. Leave it here."
        self._place.write(self._told.file, json.dumps(told, indent=2).encode())


def _read(data: bytes) -> tuple[str, str, str]:
    """Which link a pin names: identity, name, and the deployment's mark. What is no pin is another's."""
    try:
        told = json.loads(data)
        return str(told["link"]) or "?", str(told.get("name", "?"))[:200], str(told.get("by", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return "?", "?", ""
