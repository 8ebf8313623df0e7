"""The pin of a link at its target: an object that names the link. A bucket that was recreated empty, or the place of
another link, has not got it, and nothing is written there before somebody confirms.

A link that never had a pin writes one before it first writes anything. Looked at right before the first write of each
round; who looks knows no database.
"""

from __future__ import annotations

import json
import threading
import uuid

from adapters.places.reader import PlaceReader
from adapters.places.state import StatePlace
from core.bringing import Side, Unbrought
from core.errors import LakeMirrorError, NotFound
from deployment.wiring import replication_jobs
from replication.models import Link

PIN = "target.json"
MISSING = "the pin of this link is gone from {uri}: its bucket may have been deleted and created anew"
OTHERS = "the pin at {uri} is that of another link, {whose}"


class StaleTarget(LakeMirrorError):
    """The target is not the one that was pinned."""


class Pin:
    """The pin of a link, asked for once in a round. Safe to use from several threads."""

    def __init__(self, link: Link, target: PlaceReader, place: StatePlace) -> None:
        self._identity, self._pinned = link.identity, link.pinned_at is not None
        self._name = f"{link.rule.name}, link {link.number}"
        self._file = pin_name(link)
        self._target, self._place = target, place
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
            return _told(self._place.read(self._file))[0] == self._identity
        except LakeMirrorError:
            return False

    def _look(self) -> None:
        uri = self._place.uri(self._file)
        try:
            found, whose, mark = _told(self._place.read(self._file))
        except NotFound:
            self._target.answers()  # else it is the bucket that is not there
            found, whose, mark = "", "", ""
        if found != self._identity:
            if found or self._pinned:
                self.of_another = found if mark == replication_jobs.pin_mark() else ""
                text = OTHERS.format(uri=uri, whose=whose) if found else MISSING.format(uri=uri)
                self.stale = text
                raise StaleTarget(text)
            self.write()
        self._seen = True

    def write(self) -> None:
        """Pin the target. Raises what its store answers."""
        told = {"link": self._identity, "name": self._name, "by": replication_jobs.pin_mark()}
        told["what"] = "LakeMirror copies to this place, and recognises it by this. Leave it here."
        self._place.write(self._file, json.dumps(told, indent=2).encode())


def _told(data: bytes) -> tuple[str, str, str]:
    """Which link a pin names: identity, name, and the deployment's mark. What is no pin is another's."""
    try:
        told = json.loads(data)
        return str(told["link"]) or "?", str(told.get("name", "?"))[:200], str(told.get("by", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return "?", "?", ""


def pin_name(link: Link) -> str:
    """The name of a link's pin. Several links of rules that lead both ways may share a target: each has its own."""
    return f"target-{link.identity}.json" if link.rule.both_ways else PIN


def pin_of(link: Link, target: PlaceReader) -> Pin:
    """The pin of a link that has an identity."""
    return Pin(link, target, replication_jobs.pin_place_of(link.region, link.uri))


def identify(link: Link) -> None:
    """A link of a version before pins gets its name in stores."""
    if not link.identity:
        Link.objects.filter(pk=link.pk, identity="").update(identity=uuid.uuid4().hex)
        link.identity = Link.objects.values_list("identity", flat=True).get(pk=link.pk)
