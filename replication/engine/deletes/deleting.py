"""One deletion of a link: done only if right now the source has the object no more, and the target has what the link
has put there. No database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from adapters.s3.originals import telling
from core.bringing import Side, Unbrought
from core.errors import Conflict, Denied, LakeMirrorError
from core.replicating.outcomes import LATE, Kind, Outcome, of_error
from core.replicating.states import Code
from core.sweeping import Standing
from spark_jobs.replicate.copying import Place, Wanted
from spark_jobs.replicate.pins import StaleTarget

log = logging.getLogger("lakemirror.replication")

IGNORED = "the store answered that it has deleted the object, and has it still"
"""As MinIO does while versioning is suspended, for a key with a marker of the id null below its latest version."""


class Removes(Protocol):
    """What deletes at the target; adapters/places/remover.py."""

    def standing(self, key: str) -> Standing | None: ...
    def delete(self, key: str, etag: str) -> None: ...


class Deleting:
    """Deletes at a target what is gone at the source. Safe to use from several threads. `stopped` says that nothing
    more may begin; `pinned` raises unless the target is the one that was pinned; `allows`: whether what the target has
    of a key is what was deleted, where its ETag does not say so."""

    def __init__(
        self,
        source: Place,
        target: Removes,
        stopped: Callable[[], bool],
        pinned: Callable[[], None],
        allows: Callable[[str], bool] | None = None,
    ) -> None:
        self._source, self._target, self._stopped, self._pinned = source, target, stopped, pinned
        self._allows = allows

    def delete(self, doomed: Wanted) -> Outcome:
        """Delete what a key has at the target, if that has the ETag that was noted. Raises nothing.

        DONE: it is not there any more, or is not the link's; `sent`, if it was deleted now. GONE: the source has the
        key again, so there is nothing to be deleted.
        """
        if self._stopped():
            return LATE
        try:
            return self._once(doomed)
        except StaleTarget:
            return LATE
        except Unbrought as unbrought:
            return deletion_of_error(unbrought)
        except Exception:
            log.exception("an object could not be deleted for a reason that is our own fault")
            return Outcome(Kind.RETRY, Code.INTERNAL, "internal error: see the log of the worker")

    def _once(self, doomed: Wanted) -> Outcome:
        with telling(Side.SOURCE):
            if self._source.head(doomed.key) is not None:
                return Outcome(Kind.GONE)
            self._source.answers()  # the answer to HEAD does not say whether the bucket is there
        with telling(Side.DESTINATION):
            there = self._target.standing(doomed.key)
            other = there is None or there.etag != doomed.etag
            if other or (self._allows is not None and not self._allows(doomed.key)):
                return Outcome(Kind.DONE)
        if there.locked:
            text = "it is under retention or a legal hold at the target"
            return Outcome(Kind.SKIPPED, Code.LOCKED, text)
        self._pinned()
        if self._stopped():
            return LATE
        return self._delete(doomed)

    def _delete(self, doomed: Wanted) -> Outcome:
        try:
            outcome = carried_out(lambda: self._target.delete(doomed.key, doomed.etag), doomed.size)
        except Conflict as error:
            # The target has another object there by now; or the same, and the store was busy with it.
            return self._unless_there(doomed, Outcome(Kind.DONE), str(error))
        return self._unless_there(doomed, outcome, IGNORED) if outcome.kind is Kind.DONE else outcome

    def _unless_there(self, doomed: Wanted, outcome: Outcome, why: str) -> Outcome:
        """What came of it, but to be tried again where the target has the object still."""
        with telling(Side.DESTINATION):
            there = self._target.standing(doomed.key)
        if there is None or there.etag != doomed.etag:
            return outcome
        return Outcome(Kind.RETRY, Code.TARGET_FAILED, why)


def carried_out(delete: Callable[[], None], size: int) -> Outcome:
    """What came of a deletion that is asked for now. Raises Conflict."""
    try:
        delete()
    except Conflict:
        raise
    except Denied as error:
        locked = "lock" in error.message.lower() or "worm" in error.message.lower()
        return Outcome(*((Kind.SKIPPED, Code.LOCKED) if locked else (Kind.FAILED, Code.DELETE_DENIED)), str(error))
    except LakeMirrorError as error:
        return deletion_of_error(Unbrought(Side.DESTINATION, error), begun=True)
    return Outcome(Kind.DONE, size=size, sent=True)


def deletion_of_error(unbrought: Unbrought, *, begun: bool = False) -> Outcome:
    """What a store's answer means; `begun`: the deletion may yet be carried out, if nobody answered."""
    outcome = of_error(unbrought)
    if outcome.kind is Kind.GONE:
        outcome = Outcome(Kind.RETRY, Code.SOURCE_FAILED, str(unbrought.error))
    uncertain = begun and outcome.kind in (Kind.SILENT, Kind.RETRY)
    return Outcome(outcome.kind, outcome.code, outcome.message, pause=outcome.pause, uncertain=uncertain)
