"""The validator: is everything of a commit at the destination, and is it what the commit says?

The unit of validated work is a range. A commit is judged from its metarange and the coverage of its ranges.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.errors import Fenced, LakeMirrorError, Stopped
from core.mirroring.check_planning import Data, RangeCheck, judge, plan_checks
from db import clock
from db.chunks import chunks
from graveler.metarange import RangeRef
from jobs import duties
from jobs.lease import DutyOutcome, Lease
from mirroring.sweep.deletion_mark import leave_mark, newer_mark
from mirroring.sweep.deletions import delete_due
from mirroring.validate import on_demand as validations
from mirroring.validate.bring_asked import bring_asked
from mirroring.validate.bring_metaranges import Brought, planned, range_ids, read_at_source, write_whole
from mirroring.validate.bringing_order import next_to_bring
from mirroring.validate.recheck import look_again
from mirroring.validate.resolve_doubt import resolve_doubts
from mirroring.validate.reverify import has_more, verify
from mirroring.validate.run_check import run_checks
from mirrors.models import Blocker, Mirror, MirrorCommit, MirrorDuty
from mirrors.queries.metaranges import Found, load_metaranges, ranges_named
from mirrors.queries.proof_facts import store_of
from mirrors.services.priority import mark_needed, unmark_settled
from mirrors.transitions import duties as mirror_duties
from mirrors.transitions.ancestry import leave_unchecked, mark_complete_ancestry
from mirrors.transitions.blockers import LOOKED_FOR
from mirrors.transitions.bringing import keep_in_step
from mirrors.transitions.doubt import doubt_all, doubt_judgements, forget_all
from mirrors.transitions.metarange_states import note_metaranges, proven_metaranges
from mirrors.transitions.proven_heads import prove_heads
from mirrors.transitions.range_states import WAITS_NAMED, taken_down
from mirrors.transitions.required_commits import prune_commits
from mirrors.transitions.seen_missing import tell_others
from mirrors.transitions.validity import locked_mirror, note_validated
from mirrors.transitions.waived_objects import forget_withdrawn, is_out_of_step, settle_waived

log = logging.getLogger("lakemirror.validate")

BATCH = 200


def validate(lease: Lease) -> DutyOutcome:
    """One round for one mirror: look again for what was missing, take up new commits, check old ones again.

    What somebody asked for gets its share of each round, after the new commits.
    """
    mirror = mirror_duties.subject_mirror(lease)
    if mirror.state == Mirror.State.DELETING or mirror.pinned_creation_date is None:
        return DutyOutcome("the mirror has no repository yet")
    with lease.keep_alive():  # however slowly the stores answer: what was done is done anew where the lease was lost
        tell_others(mirror)  # a worker may have ended before it did
        return _round(mirror, lease)


def _round(mirror: Mirror, lease: Lease) -> DutyOutcome:
    _begin_anew_at_another_store(mirror, lease)
    _begin_anew_after_an_older_version(mirror, lease)
    _begin_anew_with_older_books(mirror, lease)
    prune_commits(mirror, lease)
    _bring_waived_in_step(mirror, lease)
    leave_unchecked(mirror)
    asked = bring_asked(mirror, lease)
    relook = look_again(mirror, lease)
    tell_others(mirror)
    unread = resolve_doubts(mirror, lease)
    mark_needed(mirror, lease)
    rows = _next_rows(mirror, lease)
    loaded = _load(mirror, rows)
    rows = [row for row in rows if row.commit.metarange_id in loaded.contents]
    brought = read_at_source(mirror, loaded.contents)
    checks = plan(mirror, rows, planned(loaded.contents, brought))
    failed = _try_checks(mirror, checks, lease)
    if checks:
        unread = resolve_doubts(mirror, lease)
    loaded = _write_metaranges(mirror, loaded, brought)
    complete = _judge(mirror, rows, loaded, lease)
    unmark_settled(mirror)
    if complete:
        note_validated(mirror)
    on_demand = validations.advance(mirror, lease)
    verified = verify(mirror, lease, busy=bool(checks))
    keep_in_step(mirror, lease)
    deletes_more = delete_due(mirror, lease)
    for error in (
        asked.failed,
        relook.failed,
        failed,
        brought.failed,
        loaded.failed,
        unread,
        on_demand,
        verified.failed,
    ):
        if error is not None:
            raise error  # now that it delays nothing else
    summary = _summary(relook.arrived, len(checks), complete, verified.ranges)
    return DutyOutcome(summary, 0.0 if deletes_more else _next_in(mirror))


def _begin_anew_at_another_store(mirror: Mirror, lease: Lease) -> None:
    """The region's objects are looked for elsewhere since its installation was changed: nothing is proven there, and
    none of our own files lies there."""
    store = store_of(mirror)
    if mirror.store == store:
        return
    with locked_mirror(mirror, lease, settings=False):
        if mirror.store:
            forget_all(mirror)
        Mirror.objects.filter(pk=mirror.pk).update(store=store)
        mirror.branches.update(certified="")
    mirror.store = store


def _begin_anew_after_an_older_version(mirror: Mirror, lease: Lease) -> None:
    """A worker of a version of which the checks prove nothing went on after the tables were brought to this one: what
    it found whole is not, and what it let wait has no blocker by which anybody would look for it again."""
    if not mirror.coverage.unnoted().exists():
        return
    with locked_mirror(mirror, lease):
        mirror.coverage.unnoted().update(**taken_down())
        doubt_judgements(mirror)


def _begin_anew_with_older_books(mirror: Mirror, lease: Lease) -> None:
    """The database came back from before something was deleted here: what it has proven may be gone. As long as the
    store does not tell, nothing moves and nothing is deleted; but checks are made, and say why."""
    try:
        mark = newer_mark(mirror)
    except LakeMirrorError as error:
        log.warning("%s: whether its books are older than the last deletion is unknown: %s", mirror.name, error.message)
        return
    if mark is None:
        return
    with locked_mirror(mirror, lease, settings=False):
        doubt_all(mirror)
        Mirror.objects.filter(pk=mirror.pk).update(facts_epoch=mark + 1)
    leave_mark(mirror)


def _bring_waived_in_step(mirror: Mirror, lease: Lease) -> None:
    """A worker of an older version has noted what is missing, or withdrawn a waiver: it knows of no waived objects."""
    if is_out_of_step(mirror):
        with locked_mirror(mirror, lease):
            forget_withdrawn(mirror)
            settle_waived(mirror)


def _next_rows(mirror: Mirror, lease: Lease) -> list[MirrorCommit]:
    """The commits of this round. The urgent ones go alone, so that they wait for no others' ranges.

    After a failure it is the others' turn: what can't be checked must not keep everything else from it.
    """
    if lease.duty.failures:
        return list(mirror.commits.unjudged()[:BATCH])
    if urgent := list(mirror.commits.unjudged().urgent()[:BATCH]):
        return urgent
    if mirror.brings:
        return next_to_bring(mirror, BATCH, alone=bool(lease.attempt % 2))
    return list(mirror.commits.unjudged()[:BATCH])


def _try_checks(mirror: Mirror, checks: list[RangeCheck], lease: Lease) -> LakeMirrorError | None:
    """Run the checks; what they failed of is raised later, for it may delay only those commits that need it."""
    try:
        if checks:
            run_checks(mirror, checks, lease)
    except (Fenced, Stopped):
        raise
    except LakeMirrorError as error:
        return error
    return None


def _summary(arrived: int, checked: int, complete: int, verified: int) -> str:
    again = f", {verified} ranges checked again" if verified else ""
    return f"{arrived} missing objects arrived, {checked} ranges checked, {complete} commits complete{again}"


def _next_in(mirror: Mirror) -> float | None:
    """At once while there is more to check, else when the next blocker is due."""
    if mirror.commits.unjudged().exists() or has_more(mirror) or validations.is_asked(mirror):
        return 0.0
    blockers = mirror.blockers.needed().filter(kind__in=LOOKED_FOR)
    soonest = blockers.order_by("look_at").values_list("look_at", flat=True).first()
    return None if soonest is None else max(0.1, (soonest - clock.now()).total_seconds())


# Metaranges


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Metaranges by their ids; those `looked_for` were asked for at the destination in this very round, and of the
    others those that turned out to be wrong. What one of those `failed` of that could not be asked for: they are left
    out. What the source's file of some names that are not here is `named`."""

    contents: Mapping[str, Found]
    looked_for: frozenset[str]
    failed: LakeMirrorError | None
    named: Mapping[str, Found] = field(default_factory=dict)


def _write_metaranges(mirror: Mirror, loaded: _Loaded, brought: Brought) -> _Loaded:
    """The metaranges of which all ranges are here by now are written, where the mirror brings its objects itself."""
    if not brought.named:
        return loaded
    covered = coverage_of(mirror, range_ids(brought.named.values()))
    return replace(loaded, contents=write_whole(mirror, brought, covered, loaded.contents), named=brought.named)


def _load(mirror: Mirror, rows: Iterable[MirrorCommit]) -> _Loaded:
    """A commit that is judged for the first time has its metarange asked for, whatever is known of that one."""
    ids = {row.commit.metarange_id for row in rows}
    new = {row.commit.metarange_id for row in rows if row.validated_at is None}
    proven = proven_metaranges(mirror, ids - new)
    failed: dict[str, LakeMirrorError] = {}
    contents = load_metaranges(mirror, ids, proven=proven, failed=failed)
    # One that is proven is asked for where no memory has it: what speaks against it then is noted like any other.
    wrong = {metarange_id for metarange_id, metarange in contents.items() if metarange.reason}
    return _Loaded(contents, frozenset(ids - proven - failed.keys() | wrong), next(iter(failed.values()), None))


# Planning


def plan(mirror: Mirror, rows: Sequence[MirrorCommit], contents: Mapping[str, Found]) -> list[RangeCheck]:
    """The ranges of these commits that no earlier check covers, each with covered ranges to build on."""
    if not rows:
        return []
    covered = coverage_of(mirror, {ref.id for f in contents.values() for ref in f.ranges})
    bases = _bases(mirror, rows)
    usable = coverage_of(mirror, {ref.id for refs in bases.values() for ref in refs})
    checks: dict[str, RangeCheck] = {}
    for row in rows:
        for check in plan_checks(contents[row.commit.metarange_id].ranges, bases[row.pk], covered | usable):
            checks.setdefault(check.range_id, check)
    return list(checks.values())


def coverage_of(mirror: Mirror, range_ids: Iterable[str]) -> dict[str, Data]:
    """What is known of ranges; those never checked are left out."""
    rows = mirror.coverage.proving(mirror.depth).values_list("range_id", "state")
    known = (pair for some in chunks(list(range_ids)) for pair in rows.filter(range_id__in=some))
    return {range_id: _data(state) for range_id, state in known}


def _data(state: str) -> Data:
    """A state that only a newer version knows is not complete, and is that version's to settle."""
    return Data(state) if state in set(Data) else Data.WAITING


def _bases(mirror: Mirror, rows: Sequence[MirrorCommit]) -> dict[int, tuple[RangeRef, ...]]:
    """For each commit the ranges of a complete parent, else of the mirror's last complete commit."""
    parents = {sha for row in rows for sha in row.commit.parents}
    complete = mirror.commits.filter(data=MirrorCommit.Data.COMPLETE).exclude(commit__metarange_id="")
    by_sha = dict(
        complete.filter(commit__sha__in=list(parents)[:900]).values_list("commit__sha", "commit__metarange_id")
    )
    last = complete.order_by("-validated_at").values_list("commit__metarange_id", flat=True).first() or ""
    chosen = {row.pk: next((by_sha[p] for p in row.commit.parents if p in by_sha), last) for row in rows}
    named = {metarange_id: ranges_named(mirror, metarange_id) or () for metarange_id in set(chosen.values())}
    return {pk: named[metarange_id] for pk, metarange_id in chosen.items()}


# Judging


def _judge(mirror: Mirror, rows: Sequence[MirrorCommit], loaded: _Loaded, lease: Lease) -> int:
    """Write down what is now known of each commit, and what follows; gives how many became complete."""
    complete = 0
    if rows or loaded.looked_for:
        with locked_mirror(mirror, lease):
            note_metaranges(mirror, {metarange_id: loaded.contents[metarange_id] for metarange_id in loaded.looked_for})
            complete = _judge_rows(mirror, rows, loaded)
    settled = mark_complete_ancestry(mirror)
    prove_heads(mirror)
    if settled or complete:
        duties.wake(MirrorDuty.PROMOTE, mirror.pk)
    return complete


def _judge_rows(mirror: Mirror, rows: Sequence[MirrorCommit], loaded: _Loaded) -> int:
    """Write down what is now known of each commit; gives how many became complete."""
    contents = loaded.contents
    covered = coverage_of(mirror, range_ids([*contents.values(), *loaded.named.values()]))
    without_file = set(mirror.blockers.filter(kind=Blocker.Kind.RANGE).values_list("holder_id", flat=True))
    lost = set(
        mirror.blockers.filter(kind=Blocker.Kind.METARANGE, gone_at_source=True).values_list("holder_id", flat=True)
    )
    now = clock.now()
    complete = 0
    for row in rows:
        _judge_row(row, contents[row.commit.metarange_id], covered, without_file, lost)
        if row.waits_for and (named := loaded.named.get(row.commit.metarange_id)):
            row.waits_for = [*row.waits_for, *_lacking(named, covered)][:WAITS_NAMED]
        if row.data == MirrorCommit.Data.COMPLETE:
            row.validated_at = row.validated_at or now
            complete += 1
        if row.metadata_at is None and _has_metadata(row, contents[row.commit.metarange_id], without_file):
            row.metadata_at = now
    fields = ["data", "waits_for", "detail", "validated_at", "metadata_at"]
    MirrorCommit.objects.bulk_update(rows, fields, batch_size=200)
    return complete


def _judge_row(
    row: MirrorCommit, metarange: Found, covered: Mapping[str, Data], without_file: set[str], lost: set[str]
) -> None:
    metarange_id = row.commit.metarange_id
    if metarange.reason:
        row.data = MirrorCommit.Data.GONE if metarange_id in lost else MirrorCommit.Data.WAITING
        row.waits_for, row.detail = [metarange_id], metarange.detail
        return
    row.data = judge((ref.id for ref in metarange.ranges), covered).value
    lacking = _lacking(metarange, covered)
    row.waits_for = lacking[:WAITS_NAMED]
    files = sum(range_id in without_file for range_id in lacking)
    row.detail = (
        f"{len(lacking)} of {len(metarange.ranges)} ranges are not complete, {files} of their files have not arrived"
        if lacking
        else ""
    )


def _lacking(metarange: Found, covered: Mapping[str, Data]) -> list[str]:
    """Those that can still arrive first: any of them must make the commit be judged again."""
    lacking = [ref.id for ref in metarange.ranges if covered.get(ref.id) is not Data.COMPLETE]
    return sorted(lacking, key=lambda range_id: covered.get(range_id) is Data.GONE)


def _has_metadata(row: MirrorCommit, metarange: Found, without_file: set[str]) -> bool:
    return (
        not metarange.reason and row.data != MirrorCommit.Data.UNKNOWN and not without_file.intersection(row.waits_for)
    )
