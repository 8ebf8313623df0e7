"""The duty of a pass: it reads on, waits for what it gave to the link, and ends."""

from __future__ import annotations

from datetime import timedelta

from core.errors import LakeMirrorError, RemoteFailure, Throttled, Unreachable
from core.replicating.passes import PassState, Seen, end_of
from core.replicating.states import Health
from core.text.phrases import count
from db import clock
from deployment.wiring import replication_jobs
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from replication.engine.looking import looker_of
from replication.engine.passes.plan import rule_of
from replication.engine.passes.reading import AHEAD
from replication.engine.passes.spark_reading import choose_who_goes_on, reading_of
from replication.models import Link, Pass
from replication.transitions import ledger, passes

PATIENT = timedelta(minutes=10)
"""So long a store may refuse to be listed before a pass fails; one that does not answer is waited for."""
GATHERED = 2000
WAIT_SECONDS = 2.0
RESTING_SECONDS = 10.0
_CROWDED = "the link has as many open objects as it may have: mend what they fail for, and it goes on"


def advance(lease: Lease) -> DutyOutcome:
    """One round for one pass."""
    made = Pass.objects.select_related("rule", "link__rule").filter(pk=-lease.duty.subject).first()
    if made is None or made.ended_at is not None:
        Duty.objects.filter(pk=lease.duty.pk).delete()
        return DutyOutcome("ended" if made else "deleted")
    if made.rule is not None and made.rule.deleting:
        return DutyOutcome("its rule is being deleted")
    if made.link is not None and made.link.removing:
        return DutyOutcome("its link is being removed")
    if why := why_it_waits(made):
        _tell(made, why)
        return DutyOutcome(why, RESTING_SECONDS)
    with lease.keep_alive():
        try:
            read, crowded = _read(made, lease)
        except LakeMirrorError as error:
            return _refused(made, lease, error)
        choose_who_goes_on(made, lease)
        return _go_on(made, lease, read, crowded)


def why_it_waits(made: Pass) -> str:
    """Why nothing of it goes on now; "": nothing is in its way."""
    rule, link = made.rule, made.link
    if made.is_dry or rule is None:
        return ""
    if rule.paused:
        return "the rule is paused"
    if link is not None and link.paused:
        return "the link is paused"
    if link is not None and link.health != Health.UP:
        return f"the link is {link.health}: {link.health_message}"
    if link is not None and link.stale_since:
        return f"the link is stale: {link.stale_message}"
    return ""


def _tell(made: Pass, message: str) -> None:
    Pass.objects.filter(pk=made.pk, ended_at=None).exclude(message=message).update(message=message)


def _read(made: Pass, lease: Lease) -> tuple[bool, bool]:
    """Read on, unless as many objects wait as may; whether every stretch is read, and whether the link has no room for
    what was found. Raises what a store answers."""
    if made.read_at is not None:
        return True, False
    if not made.is_dry and passes.waiting_rows(made).count() >= AHEAD:
        return False, False
    rule, links = rule_of(made)
    looker = looker_of(rule, links)
    looker.dated = made.older_than is not None
    try:
        for link in links:
            if link.pk in looker.unasked:
                replication_jobs.place_of(link.region, link.uri)
                raise Unreachable(f"link {link.number} is down: {link.health_message}")
        reading = reading_of(made, lease, links, looker)
        read = reading.carry()
    finally:
        looker.close()
    if read:
        Pass.objects.filter(pk=made.pk, read_at=None).update(read_at=clock.now())
    return read, reading.crowded


def _refused(made: Pass, lease: Lease, error: LakeMirrorError) -> DutyOutcome:
    """A store that does not answer is waited for; one that refuses may be put right for a while."""
    now = clock.now()
    if isinstance(error, Throttled | Unreachable | RemoteFailure):
        Pass.objects.filter(pk=made.pk).update(error_since=None)
        _tell(made, str(error))
        return DutyOutcome(str(error), RESTING_SECONDS, whole=False)
    since = made.error_since or now
    if made.is_dry or now - since >= PATIENT:
        _end(made, lease, PassState.FAILED, str(error))
        return DutyOutcome(f"failed: {error}")
    Pass.objects.filter(pk=made.pk).update(error_since=since)
    _tell(made, str(error))
    return DutyOutcome(str(error), RESTING_SECONDS, whole=False)


def _go_on(made: Pass, lease: Lease, read: bool, crowded: bool) -> DutyOutcome:
    """What has failed is written down once nothing else waits, or there is no room for more; then it may end."""
    Pass.objects.filter(pk=made.pk).update(error_since=None)
    _tell(made, _CROWDED if crowded else "")
    if made.is_dry:
        return _ended(made, lease) if read else DutyOutcome("reading", 0.0)
    waiting, failed = passes.waiting_rows(made).count(), passes.failed_rows(made).count()
    if failed and ((waiting == failed and read) or failed >= AHEAD // 2):
        waiting -= _gather(made, lease)
    Pass.objects.filter(pk=made.pk, ended_at=None).update(waiting=waiting)
    if read and not waiting:
        return _ended(made, lease)
    if crowded:
        return DutyOutcome(_CROWDED, RESTING_SECONDS)
    pause = 0.0 if not read and waiting < AHEAD else WAIT_SECONDS
    return DutyOutcome(f"{count(waiting, 'object')} to be copied", pause)


def _gather(made: Pass, lease: Lease) -> int:
    """Write down what has failed, as long as the link is not at fault itself; gives how many."""
    gathered = 0
    while True:
        with lease.transaction():
            link = _held(made)
            if link is None or link.health != Health.UP:
                return gathered
            made.refresh_from_db(fields=["rows", "more_rows"])
            number = passes.gather(link, made, GATHERED)
        gathered += number
        if number < GATHERED:
            return gathered


def _held(made: Pass) -> Link | None:
    return ledger.hold(made.link_id) if made.link_id is not None else None


def _ended(made: Pass, lease: Lease) -> DutyOutcome:
    made.refresh_from_db()
    state, message = end_of(Seen(made.actions, made.failed, made.prefix, made.older_than))
    _end(made, lease, state, message)
    return DutyOutcome(f"{state.value}: {message}" if message else state.value)


def _end(made: Pass, lease: Lease, state: PassState, message: str) -> None:
    with lease.transaction():
        _held(made)
        passes.end(made, state, message, clock.now())
