"""One key of a link that copies all versions: what its target lacks of the chain, the oldest first. No database.

Whoever works on a key reads both chains first: what was done before, by whomever, is seen there, and so nothing has to
be remembered of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from adapters.places.reader import time_of
from adapters.places.version_writes import VersionMover
from adapters.places.versions import ENABLED, VersionedPlace
from adapters.s3.originals import telling
from core.bringing import Side, Unbrought
from core.errors import Conflict, Unversioned
from core.exporting.deadline import Late
from core.replicating.eligible import fits
from core.replicating.outcomes import LATE, Copy, Judged, Kind, Outcome, of_error
from core.replicating.states import Code
from core.replicating.versions import Chain, Plan, Step, Version, fingerprint, is_shown, name_of
from core.travelling.copies import digest_of
from spark_jobs.replicate.carrying import Carrying
from spark_jobs.replicate.chains import Terms, compared
from spark_jobs.replicate.copying import MOST_CHANGES, Wanted
from spark_jobs.replicate.key_locks import KeyLocks
from spark_jobs.replicate.of_versions.carrying import AT_ONCE, VersionCarrying

log = logging.getLogger("lakemirror.replication")

PATIENT = 5
"""So often a version is tried again that fails for a reason that may pass, before later ones go on without it."""
MOST_REFUSED = 2
"""After so many versions of one key that the key may not read or write the others are not tried."""
VERSIONING_SECONDS = 2.0
"""So long it is taken for true that the target's bucket keeps versions."""
_UNLISTED = (
    "the target has it and does not list it, so nobody can tell which versions it has: MinIO lists nothing below the "
    "name of another object"
)
_HIDES = "the target keeps one version of a directory object, which a delete marker would delete"


@dataclass
class _Key:
    """A key that is worked on: what the source has of it, which of that can't be copied, and what was written;
    `compares`: how the target describes what it has already is compared, too."""

    key: str
    source: Chain
    there: Chain
    but: set[str]
    patient: bool
    terms: Terms
    without: str = ""
    """A version of the target that counts as gone."""
    compares: bool = False
    tagged: dict[str, bool] = field(default_factory=dict)
    """Which versions have the tags that the rule asks for, as far as they were asked."""
    described: str = ""
    changed: bool = False
    """Something but bytes was written."""
    unsure: bool = False
    """What was to go with the bytes of a version that was written is not there."""
    failed: Outcome | None = None
    refused: int = 0
    written: int = 0
    bytes: int = 0
    listed: bool = True
    """Whether `there` is as the target lists it, in its order."""
    made: list[Copy] = field(default_factory=list)

    def outcome(self, outcome: Outcome) -> Outcome:
        """What came of it, with what was written."""
        named = {"etag": fingerprint(self.source)} if self.source else {}
        if self.unsure and outcome.kind is Kind.LATE and self.failed is not None:
            outcome = replace(self.failed, kind=Kind.RETRY)  # so that the next try compares what is there
        sent, made = self.written > 0 or self.changed, tuple(self.made)
        return replace(outcome, size=self.bytes, sent=sent, made=made, described=self.described, **named)


@dataclass
class VersionCopying:
    """Brings all versions of keys from one place to another. Safe to use from several threads, one for each key.

    `stopped` says that nothing more may begin; `wants` which versions are copied, by when they were written;
    `carrying`, what goes with their bytes, and which tags they need: None, headers and metadata.
    """

    source: VersionedPlace
    target: VersionedPlace
    mover: VersionMover
    terms: Terms
    stopped: Callable[[], bool] = lambda: False
    wants: Callable[[datetime | None], bool] | None = None
    carrying: Carrying | None = None
    keys: KeyLocks = field(default_factory=KeyLocks)
    _one: Any = field(default_factory=threading.Lock)
    _keeps_versions_until: float = 0.0

    def copy(self, wanted: Wanted) -> Outcome:
        """Have the target's chain of a key end as the source's. Raises nothing: all that happens is an outcome."""
        if not fits(self.target.prefix, wanted.key):
            return Outcome(Kind.SKIPPED, Code.KEY_TOO_LONG, "the key would have more than 1,024 bytes at the target")
        with self.keys.held(wanted.key):
            return self.bring(wanted)

    def bring(self, wanted: Wanted) -> Outcome:
        """As `copy`, by who holds the key. What `wanted` purges counts as gone at the target."""
        outcome, unsure = LATE, False
        for _ in range(MOST_CHANGES):
            if self.stopped():
                return replace(outcome, kind=Kind.RETRY if unsure else Kind.LATE)
            before, (outcome, unsure) = outcome, self._tried(wanted)
            wanted = wanted._replace(absent=wanted.absent and not unsure)
            sent, made = before.sent or outcome.sent, (*before.made, *outcome.made)
            outcome = replace(outcome, size=before.size + outcome.size, sent=sent, made=made)
            if outcome.kind is not Kind.CHANGED:
                break
        return outcome

    def _tried(self, wanted: Wanted) -> tuple[Outcome, bool]:
        """What came of one try, and whether what goes with something that it wrote is not there."""
        terms = self.terms._replace(shows=self.terms.shows or wanted.shows or bool(wanted.hides))
        work = _Key(wanted.key, (), (), set(), wanted.attempts < PATIENT, terms, wanted.purges)
        deletes = bool(wanted.purges) or (bool(wanted.hides) and not wanted.attempts)
        work.compares = self._describes and not wanted.absent and not deletes
        try:
            outcome = self._once(work, wanted)
        except Late:
            outcome = LATE
        except Unbrought as unbrought:
            outcome = of_error(unbrought)
        except Exception:
            log.exception("the versions of an object could not be copied for a reason that is our own fault")
            outcome = Outcome(Kind.RETRY, Code.INTERNAL, "internal error: see the log of the worker")
        return work.outcome(outcome), work.unsure

    def _once(self, work: _Key, wanted: Wanted) -> Outcome:
        with telling(Side.SOURCE):
            work.source = self.source.chain(wanted.key)
        if not work.source:
            return Outcome(Kind.GONE)
        if self.wants is not None:
            work.but = {one.id for one in work.source if not self.wants(time_of(one.modified))}
        self._list(work)
        if self._is_unlisted(work):
            return Outcome(Kind.FAILED, Code.NOT_LISTED, _UNLISTED)
        if wanted.hides:
            made = work.terms.hiding(work.key, work.source, work.there, work.but)
            if made is not None and made.id != wanted.hides:
                return Outcome(Kind.GONE)  # it is another deletion by now, which nobody has let through
        # What is not shown is not hidden by what comes with it: deleted before it was ever copied, say.
        free = bool(wanted.hides) or not is_shown(work.there)
        work.terms = work.terms._replace(hides=work.terms.hides or free)
        return self._brought(work)

    def _list(self, work: _Key) -> None:
        with telling(Side.DESTINATION):
            work.there, work.listed = self.target.chain(work.key), True
        if work.without:
            work.there = [version for version in work.there if version.id != work.without]

    def _is_unlisted(self, work: _Key) -> bool:
        """Whether a target that lists nothing of a key has it all the same: it would be given all versions again, with
        each comparison. An exact one knows them by their ids."""
        if self.terms.exact or work.there or "/" not in work.key.rstrip("/"):
            return False
        with telling(Side.DESTINATION):
            return self.target.head(work.key) is not None

    def _stays_unlisted(self, work: _Key) -> bool:
        """The same after all was written, of a key whose latest is a marker: HEAD does not show it."""
        hidden = work.written and work.source[-1].marker and "/" in work.key.rstrip("/")
        if self.terms.exact or not hidden:
            return False
        self._list(work)
        return not work.there

    def _brought(self, work: _Key) -> Outcome:
        """Step by step. What can't be copied is told, and the others are copied without it."""
        while True:
            made = self._planned(work)
            if made.unhidable:
                return Outcome(Kind.SKIPPED, Code.ONE_VERSION, _HIDES, version=work.source[-1].id)
            if made.conflicts and work.failed is None:
                work.failed = _conflict(made.conflicts[0])
            if not made.steps:
                if self._stays_unlisted(work):
                    return Outcome(Kind.FAILED, Code.NOT_LISTED, _UNLISTED)
                return self._described(work) or work.failed or Outcome(Kind.DONE)
            if self.stopped():
                return LATE
            stops = self._step(work, made.steps[0])
            if stops is not None:
                return stops

    @property
    def _describes(self) -> bool:
        """Whether what is at the target is to be described as the source does; of two sides nobody knows which one's is
        newer."""
        return self.carrying is not None and self.carrying.terms.all and not self.terms.newest

    def _described(self, work: _Key) -> Outcome | None:
        """Have the target describe what it has already as the source does; gives what came of it where nothing more of
        the key is to be tried now. What changed meanwhile is told by `work.described`."""
        if not work.compares or self.carrying is None:
            return None
        if not work.listed:
            self._list(work)
        carrying = VersionCarrying(self.carrying, self.source, self.target, self.mover.together)
        terms, named = work.terms._replace(shows=self.terms.shows), dict[str, str]()
        found = carrying.found(work.key, work.source, work.there, terms, work.but)
        for at in range(0, len(found), AT_ONCE):
            if self.stopped():
                return LATE
            some = found[at : at + AT_ONCE]
            for one, outcome in zip(some, carrying.carried(work.key, some), strict=True):
                own, work.changed = one.pair.own, work.changed or outcome.sent
                named[own.id] = outcome.described
                if outcome.kind is not Kind.DONE and (stops := _after(work, own, replace(outcome, version=own.id))):
                    return stops
        work.described = digest_of(named)
        return None

    def _planned(self, work: _Key) -> Plan:
        tagged = partial(self._is_tagged, work) if self.carrying and self.carrying.terms.tags else None
        with telling(Side.DESTINATION):
            made, work.there, untagged = compared(
                self.target, work.key, work.source, work.there, work.terms, work.but, tagged
            )
        work.but |= untagged
        if self.terms.exact and not work.listed and _leaves_open_what_is_latest(work, made):
            self._list(work)  # only the target knows which of its versions is the latest
            return self._planned(work)
        return made

    def _is_tagged(self, work: _Key, key: str, version: Version) -> bool:
        """Whether a version has the tags that the rule asks for, and is there still; asked once in a try. Raises
        Unbrought."""
        assert self.carrying is not None
        if version.id not in work.tagged:
            try:
                work.tagged[version.id] = self.carrying.of_version(version.id).wants(key)
            except Unbrought as unbrought:
                if not unbrought.gone:
                    raise
                work.tagged[version.id] = False
        return work.tagged[version.id]

    def _step(self, work: _Key, step: Step) -> Outcome | None:
        """Do one; gives what came of it where nothing more of the key is to be tried now."""
        try:
            self._expect_versions()
            outcome = self._written(work, step)
        except Unbrought as unbrought:
            outcome = _told(unbrought, step.version)
        return None if outcome.kind is Kind.DONE else _after(work, step.version, outcome)

    def _written(self, work: _Key, step: Step) -> Outcome:
        """What came of it; a version is at the target also where what goes with it is not. Raises Unbrought."""
        uri = self.target.uri(work.key)
        if step.version.marker:
            self._note(work, step, self.mover.mark(uri, step))
            return Outcome(Kind.DONE)
        if self.carrying is None:
            self._note(work, step, self.mover.put(self.source.uri(work.key), uri, step))
            return Outcome(Kind.DONE)

        def already() -> None:
            work.compares = self._describes  # as it was brought by somebody, who knows with what

        parcel = self.carrying.of_version(step.version.id).parcel(work.key)
        try:
            written = self.mover.put(self.source.uri(work.key), uri, step, parcel, already)
        except Unbrought as unbrought:
            raise parcel.refused(unbrought) from unbrought
        self._note(work, step, written)
        unsure, work.unsure = work.unsure, True
        outcome = parcel.arrived(Outcome(Kind.DONE, there=written.etag), written.id)
        work.unsure = unsure or outcome.kind is not Kind.DONE
        return replace(outcome, version=step.version.id, there="")

    def _note(self, work: _Key, step: Step, written: Version) -> None:
        work.there = [*work.there, written]
        work.made.append(Copy(written, name_of(step.version)))
        work.written, work.bytes, work.listed = work.written + 1, work.bytes + step.version.size, False

    def _expect_versions(self) -> None:
        """Raises Unbrought unless the target's bucket keeps versions: else a write would replace what is there, and a
        delete would delete it."""
        with self._one:
            if time.monotonic() < self._keeps_versions_until:
                return
            with telling(Side.DESTINATION):
                status = self.target.versioning()
                if status != ENABLED:
                    told = f"versioning of the target's bucket '{self.target.bucket}' is {status or 'off'}"
                    raise Unversioned(told, hint="Enable it")
            self._keeps_versions_until = time.monotonic() + VERSIONING_SECONDS


def _leaves_open_what_is_latest(work: _Key, made: Plan) -> bool:
    """Whether it matters where what was written lies among what somebody else has put there."""
    if made.steps:
        return not made.steps[0].exact
    own = {version.id for version in work.source}
    return any(version.id not in own for version in work.there)


def _told(unbrought: Unbrought, version: Version) -> Outcome:
    known = isinstance(unbrought, Judged) or unbrought.side is Side.SOURCE
    if not known and isinstance(unbrought.error, Conflict):
        return _conflict(version, str(unbrought.error))
    return replace(of_error(unbrought), version=version.id)


def _conflict(version: Version, message: str = "") -> Outcome:
    told = message or "the target has something else under this version id: it is left as it is"
    return Outcome(Kind.FAILED, Code.CONFLICT, told, version=version.id)


def _after(work: _Key, version: Version, outcome: Outcome) -> Outcome | None:
    """What a failure means for the others of the key. A version that is gone meanwhile has all of it looked at anew; a
    reason of its own holds up no other; one that may pass does for some tries, for nothing can be put between later."""
    if outcome.kind in (Kind.GONE, Kind.CHANGED):
        return Outcome(Kind.CHANGED, Code.SOURCE_CHANGED, "the source has other versions by now", version=version.id)
    if outcome.kind in (Kind.SILENT, Kind.LATE) or outcome.code is Code.TARGET_UNVERSIONED:
        return outcome
    if outcome.kind is Kind.RETRY and work.patient:
        return outcome
    work.refused += outcome.kind is Kind.REFUSED
    if work.refused >= MOST_REFUSED:
        return outcome
    work.failed = work.failed or outcome
    work.but.add(version.id)
    return None
