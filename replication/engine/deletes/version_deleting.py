"""One key of a link that copies all versions: what its target shows is hidden by the source's delete marker, or a copy
of a version that the source has no more is deleted there for good. Only if that is still so right now. No database.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Protocol

from adapters.s3.originals import telling
from core.bringing import Side, Unbrought
from core.errors import Conflict, Invalid, RemoteFailure
from core.replicating.deletes import MARKER
from core.replicating.outcomes import LATE, Kind, Outcome
from core.replicating.states import Code
from core.replicating.versions import NULL, Chain, Version, name_of
from core.sweeping import Standing
from replication.engine.deletes.deleting import carried_out, deletion_of_error
from spark_jobs.replicate.copying import Wanted
from spark_jobs.replicate.pins import Pin, StaleTarget
from spark_jobs.replicate.version_copying import VersionCopying

log = logging.getLogger("lakemirror.replication")


class Purges(Protocol):
    """What deletes versions at the target; adapters/places/remover.py."""

    def standing(self, key: str, version: str = "") -> Standing | None: ...
    def purge(self, key: str, version: str) -> None: ...


@dataclass
class VersionDeleting:
    """Hides and purges at a target. Safe to use from several threads: of a key one works at a time, copying or not."""

    copying: VersionCopying
    remover: Purges
    pin: Pin

    def delete(self, doomed: Wanted) -> Outcome:
        """Do what a row says. Raises nothing.

        DONE: the target shows no object there, or has no such version of ours any more. GONE: the source shows an
        object again, or another marker hides it, or has the version again: there is nothing to be done.
        """
        with self.copying.keys.held(doomed.key):
            if self.copying.stopped():
                return LATE
            try:
                self.pin.check()
                return self._hidden(doomed) if doomed.hides else self._purged(doomed)
            except StaleTarget:
                return LATE
            except Unbrought as unbrought:
                return deletion_of_error(unbrought)
            except Exception:
                log.exception("a version could not be deleted for a reason that is our own fault")
                return Outcome(Kind.RETRY, Code.INTERNAL, "internal error: see the log of the worker")

    def _hidden(self, doomed: Wanted) -> Outcome:
        """What lacks before the marker comes first, for at most targets nothing can be put before it later."""
        outcome = self.copying.bring(doomed)
        if outcome.code is Code.TARGET_DENIED and outcome.version == doomed.hides:
            return replace(outcome, kind=Kind.FAILED, code=Code.DELETE_DENIED)
        return replace(outcome, uncertain=outcome.kind in (Kind.SILENT, Kind.RETRY))

    def _purged(self, doomed: Wanted) -> Outcome:
        with telling(Side.SOURCE):
            source: Chain = self.copying.source.chain(doomed.key)
            if doomed.of in {name_of(version) for version in source} or self._is_at_source(doomed):
                return Outcome(Kind.GONE)
            self.copying.source.answers()  # a listing of nothing does not say whether the bucket is there
        with telling(Side.DESTINATION):
            there: Chain = self.copying.target.chain(doomed.key)
        found = next((version for version in there if version.id == doomed.purges), None)
        if found is None or (MARKER if found.marker else found.etag) != doomed.etag:
            return Outcome(Kind.DONE)
        if self._stands_for_another(doomed.key, source, there, found):
            brought = self.copying.bring(doomed)
            if brought.kind is not Kind.DONE:
                kind = Kind.RETRY if brought.kind in (Kind.GONE, Kind.CHANGED) else brought.kind
                return replace(brought, kind=kind)
            return replace(self._delete(doomed, found), made=brought.made)
        return self._delete(doomed, found)

    def _is_at_source(self, doomed: Wanted) -> bool:
        """Asked by its id, too: MinIO lists nothing below the name of another object. Of a marker some stores tell only
        in their listings."""
        version, _, etag = doomed.of.partition(" ")
        try:
            found = self.copying.source.etag_of(doomed.key, version)
        except Invalid as error:
            if doomed.etag == MARKER:
                return True
            # MinIO, while the deletion has not reached where that store replicates to.
            raise RemoteFailure(error.message) from error
        return found is not None and (version != NULL or found == etag)

    def _stands_for_another(self, key: str, source: Chain, there: Chain, found: Version) -> bool:
        """Whether something that the source still has would lack without it: equal content is told by its place in the
        chain alone."""
        if not source:
            return False
        rest = [version for version in there if version is not found]
        now, then = (self.copying.terms.plan(key, source, chain) for chain in (there, rest))
        return {step.version.id for step in then.steps} - {step.version.id for step in now.steps} != set()

    def _delete(self, doomed: Wanted, found: Version) -> Outcome:
        if not found.marker:
            with telling(Side.DESTINATION):
                there = self.remover.standing(doomed.key, found.id)
            if there is None or there.etag != doomed.etag:
                return Outcome(Kind.DONE)
            if there.locked:
                return Outcome(Kind.SKIPPED, Code.LOCKED, "it is under retention or a legal hold at the target")
        if self.copying.stopped():
            return LATE
        try:
            return carried_out(lambda: self.remover.purge(doomed.key, found.id), doomed.size)
        except Conflict as error:
            return Outcome(Kind.RETRY, Code.TARGET_FAILED, str(error))
