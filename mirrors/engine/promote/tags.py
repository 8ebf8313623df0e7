"""Tags of a mirror that follows them: made once their commits are complete, after all of its branches."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from django.db import transaction
from django.db.models import Q

from core.errors import Conflict, Denied, LakeMirrorError, NoData, NotFound, RemoteFailure
from core.mirroring.promotion import MOVED_BY_OTHERS, Action, Whose, Why
from core.mirroring.tag_promotion import TagDecision, TagFacts, choose_tag, whose_tag_move
from core.ports import LakeFS
from db import clock
from db.chunks import chunks
from jobs.lease import Lease
from mirrors.engine.manage import fence_call, require_pinned
from mirrors.engine.promote.guard import Guard
from mirrors.engine.promote.record_check import doubt_records, prove_records
from mirrors.engine.promote.shown import Shown
from mirrors.engine.sense.read_log import list_tags
from mirrors.models import Mirror, MirrorTag, Promotion
from mirrors.transitions.move_intents import intend, intents_of

log = logging.getLogger("lakemirror.tags")


def follow_tags(mirror: Mirror, lakefs: LakeFS, lease: Lease, guard: Guard, shown: Shown) -> int:
    """One round over a mirror's tags; how many were made, moved or deleted. `shown`: what its branches lead to."""
    if not mirror.tags:
        return 0
    mirror_tags, moved = list_tags(lakefs, mirror.name, lease), 0
    for name, facts in list(_gather(mirror, mirror_tags)):
        lease.renew()
        with guard(mirror, f"{name} (a tag)"):
            if _settle(mirror, name, facts, lakefs, lease, shown):
                mirror_tags.pop(name, None)  # no stray, although it was there when the round began
                moved += 1
    _note_strays(mirror, mirror_tags, lease)
    return moved


def _gather(mirror: Mirror, mirror_tags: dict[str, str]) -> Iterator[tuple[str, TagFacts]]:
    """Facts about tags that are not at rest."""
    rows, intents = {row.name: row for row in mirror.tag_rows.all()}, intents_of(mirror, tags=True)
    stirring: dict[str, str] = {}
    for name, commit, gone_at in mirror.source.tags.values_list("name", "commit_id", "gone_at"):
        row, commit = rows.get(name), "" if gone_at else commit
        noted = row.commit_id if row and not row.stray else ""
        if not commit and gone_at is None:  # the source has it, at a commit that can't be read yet
            commit = _last_place(mirror, row) if row and not row.stray else ""
            if not commit:
                continue
            if name not in mirror_tags and (not row.commit_id or "" in intents[name]):
                commit = ""  # the source had deleted it meanwhile, and so have we
        at_rest = commit == mirror_tags.get(name, "") == noted and bool(commit) == (row is not None)
        if not at_rest or (row is not None and row.stands_at is not None):
            stirring[name] = commit
    promotable = _promotable(mirror, set(stirring.values()))
    for name, commit in stirring.items():
        row = rows.get(name)
        is_ours = row is not None and not row.stray
        noted = _last_place(mirror, row) if row and is_ours and (commit or row.commit_id) else ""
        standing, intended = mirror_tags.get(name, ""), frozenset(intents[name])
        yield name, TagFacts(commit, standing, noted, is_ours, commit in promotable, intended)


def _last_place(mirror: Mirror, row: MirrorTag) -> str:
    """Where we made it last, although it was deleted since, on its way to another commit."""
    if row.commit_id:
        return row.commit_id
    move = mirror.promotions.filter(is_tag=True, branch=row.name).exclude(why__in=MOVED_BY_OTHERS).first()
    return move.to_commit if move else ""


def _promotable(mirror: Mirror, commits: Collection[str]) -> set[str]:
    shas, promotable = sorted(commits), set[str]()
    for some in chunks(shas):
        rows = mirror.commits.promotable().filter(commit__sha__in=some)
        promotable.update(rows.values_list("commit__sha", flat=True))
    return promotable


# --- decision, act, read back ---------------------------------------------------------------------------------------


def _settle(mirror: Mirror, name: str, facts: TagFacts, lakefs: LakeFS, lease: Lease, shown: Shown) -> bool:
    whose = whose_tag_move(facts)
    if whose is Whose.OURS and facts.there:
        facts = _note_own_move(mirror, name, facts, lease)
    elif whose in (Whose.OTHERS, Whose.VANISHED):
        _note_foreign_move(mirror, name, facts, Why.FOREIGN if whose is Whose.OTHERS else Why.VANISHED, lease)
    if facts.ours:
        _note_standing(mirror, name, facts.there, lease)
    decision = choose_tag(facts)
    if decision.action is Action.NOTHING:
        _remember(mirror, name, facts, decision, lease)
        return False
    if not _carry_out(mirror, name, facts, decision, lakefs, lease, shown):
        return False
    standing = _read_back(lakefs, mirror, name)
    if standing != decision.commit_id:
        _note_standing(mirror, name, standing, lease)
        wanted = decision.commit_id[:8] or "nothing"
        raise RemoteFailure(f"the tag {name} reads {standing[:8] or 'nothing'} after it was to be {wanted}")
    with transaction.atomic():
        _record(mirror, name, facts.there, decision.commit_id, decision.why, lease)
        _note(mirror, name, decision.commit_id or None, lease)
        if decision.action is Action.DELETE:  # what stands there later is somebody's own
            mirror.intents.filter(name=name, is_tag=True).delete()
    return True


def _note_own_move(mirror: Mirror, name: str, facts: TagFacts, lease: Lease) -> TagFacts:
    """A worker ended between its call and its note: whatever the source's tag names by now, this one is ours."""
    intent = mirror.intents.get(is_tag=True, name=name, to_commit=facts.there)
    with transaction.atomic():
        _record(mirror, name, facts.noted, facts.there, Why(intent.why), lease)
        _note(mirror, name, facts.there, lease)
    return replace(facts, noted=facts.there, ours=True)


def _note_foreign_move(mirror: Mirror, name: str, facts: TagFacts, why: Why, lease: Lease) -> None:
    """Once for each such move, although it may take several rounds until the tag can be put back."""
    last = mirror.promotions.filter(is_tag=True, branch=name).first()
    if last is None or (last.why, last.to_commit) != (why, facts.there):
        doubt_records(mirror, lease)
        _record(mirror, name, facts.noted, facts.there, why, lease)


def _note_standing(mirror: Mirror, name: str, commit: str, lease: Lease) -> None:
    """One of ours that is not where its row says, whoever did it, is said to be where it is."""
    rows = mirror.tag_rows.filter(name=name, stray=False)
    with transaction.atomic():
        lease.lock()
        rows.exclude(commit_id=commit).update(stands_at=commit)
        rows.filter(commit_id=commit).exclude(stands_at=None).update(stands_at=None)


def _note_absence(mirror: Mirror, name: str, facts: TagFacts, lease: Lease) -> None:
    """A tag that we made is on its way from here; what somebody else put there is only not there any more."""
    if facts.there == facts.noted:
        _note(mirror, name, "", lease)
    else:
        _note_standing(mirror, name, "", lease)


def _carry_out(
    mirror: Mirror,
    name: str,
    facts: TagFacts,
    decision: TagDecision,
    lakefs: LakeFS,
    lease: Lease,
    shown: Shown,
) -> bool:
    """One forced call, or two, each judged last thing before it; false if that forbids it. Whatever they answer, the
    tag is read back."""
    require_pinned(mirror, lakefs)
    if decision.commit_id and not prove_records(mirror, lakefs, decision.commit_id, shown.history(), lease):
        return False
    if not _are_intended(mirror, name, facts, decision, _steps(decision), lease):
        return False
    try:
        if decision.action is not Action.CREATE:
            if decision.commit_id:
                _note_absence(mirror, name, facts, lease)  # first: whoever ends between may be followed by a pause
            fence_call(lease)
            lakefs.delete_tag(mirror.name, name)
            if not _are_intended(mirror, name, facts, decision, _steps(decision)[:-1], lease, completes=True):
                return False
        if decision.action is not Action.DELETE:
            fence_call(lease)
            lakefs.create_tag(mirror.name, name, decision.commit_id)
    except (Conflict, NotFound, NoData, Denied) as error:
        if isinstance(error, NotFound) and decision.commit_id:
            doubt_records(mirror, lease)
        log.warning("%s: %s", mirror.name, error)
    except LakeMirrorError as error:
        if not error.retryable:
            raise
        log.warning("%s: reading back after: %s", mirror.name, error)
    return True


def _are_intended(
    mirror: Mirror,
    name: str,
    facts: TagFacts,
    decision: TagDecision,
    steps: Sequence[str],
    lease: Lease,
    *,
    completes: bool = False,
) -> bool:
    for to_commit in steps:
        judgement = intend(
            mirror,
            lease,
            name=name,
            from_commit=facts.there,
            to_commit=to_commit,
            why=decision.why,
            is_tag=True,
            completes=completes,
        )
        if not judgement.allowed:
            log.warning("%s: the tag %s is not moved: %s", mirror.name, name, judgement.detail)
            return False
    return True


def _steps(decision: TagDecision) -> list[str]:
    """What the tag names on the way: between deletion and creation there is none, and nobody is to blame."""
    steps = {Action.CREATE: [decision.commit_id], Action.DELETE: [""]}
    return steps.get(decision.action, [decision.commit_id, ""])


def _read_back(lakefs: LakeFS, mirror: Mirror, name: str) -> str:
    try:
        return lakefs.get_tag(mirror.name, name).commit_id
    except NotFound:
        return ""


# --- the books ------------------------------------------------------------------------------------------------------


def _remember(mirror: Mirror, name: str, facts: TagFacts, decision: TagDecision, lease: Lease) -> None:
    """The destination is where it should be although our books said otherwise (a crash after the call)."""
    if not facts.source and not facts.there:
        _note(mirror, name, None, lease)
    elif decision.why is Why.UP_TO_DATE and facts.promotable and facts.noted != facts.source:
        _note(mirror, name, facts.source, lease)
    elif facts.there and facts.there == facts.noted and mirror.tag_rows.filter(name=name, commit_id="").exists():
        _note(mirror, name, facts.there, lease)  # it was to be deleted, and that was given up


def _note(mirror: Mirror, name: str, commit: str | None, lease: Lease, *, stray: bool = False) -> None:
    with transaction.atomic():
        lease.lock()
        if commit is None:
            mirror.tag_rows.filter(name=name).delete()
            return
        values = {"commit_id": commit, "stray": stray, "stands_at": None}
        MirrorTag.objects.update_or_create(mirror=mirror, name=name, defaults=values)


def _record(mirror: Mirror, name: str, from_commit: str, to_commit: str, why: Why, lease: Lease) -> None:
    with transaction.atomic():
        lease.lock()
        Promotion.objects.create(
            mirror=mirror,
            branch=name,
            is_tag=True,
            from_commit=from_commit,
            to_commit=to_commit,
            why=why,
            at=clock.now(),
        )
    log.info("%s: the tag %s is now at %s (%s)", mirror.name, name, to_commit[:8] or "nothing", why)


def _note_strays(mirror: Mirror, mirror_tags: dict[str, str], lease: Lease) -> None:
    """Tags at the destination that the source never had, or has elsewhere and we did not make: shown, never touched."""
    source_names = set(mirror.source.tags.values_list("name", flat=True))
    if not source_names:
        return  # the source's tags were not looked at yet
    known = {row.name: row for row in mirror.tag_rows.all()}
    mirror.tag_rows.filter(stray=True, name__in=known.keys() - mirror_tags.keys()).delete()
    for name, commit in mirror_tags.items():
        row = known.get(name)
        foreign = name not in source_names or row is None or row.stray
        if foreign and (row is None or not row.stray or row.commit_id != commit) and _is_foreign(mirror, name, commit):
            _record(mirror, name, row.commit_id if row else "", commit, Why.FOREIGN, lease)
            _note(mirror, name, commit, lease, stray=True)


def _is_foreign(mirror: Mirror, name: str, commit: str) -> bool:
    """Not one that is just where the source has it: its commit may only not be complete yet, as after a rebuild."""
    at_source = mirror.source.tags.filter(Q(commit_id=commit) | Q(unread_commit=commit), name=name, gone_at=None)
    return not at_source.exists()
