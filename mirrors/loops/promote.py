"""Promotion: the newest promotable candidate of each branch becomes its head at the destination.

Publish last: everything is there and checked before the one call that moves the branch; then the branch is read back.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import UTC, datetime

from django.db import transaction

from adapters.lakefs import CALL_SECONDS
from core.errors import Conflict, Denied, Fenced, LakeMirrorError, NoData, NotFound
from core.ports import LakeFS
from core.promotion import Action, BranchFacts, CandidateCommit, Decision, choose_promotion, superseded
from lakemirror_site import wiring
from mirrors import duties
from mirrors.duties import Lease, Outcome
from mirrors.loops.manage import require_pinned
from mirrors.loops.sense import list_heads
from mirrors.models import Candidate, Mirror, MirrorBranch, Promotion, SourceBranch

log = logging.getLogger("lakemirror.promote")


def promote(lease: Lease) -> Outcome:
    """One round over all branches of one mirror."""
    mirror = duties.subject_mirror(lease)
    if mirror.state != Mirror.State.ACTIVE or mirror.paused or mirror.source.frozen_reason:
        return Outcome("nothing moves while the mirror is paused, stopped or frozen")
    lakefs = wiring.lakefs(mirror.region)
    heads = list_heads(lakefs, mirror.name, lease)
    moved, failed = 0, ""
    for branch, facts in gather_facts(mirror, heads):
        lease.beat()
        try:
            moved += _settle_branch(mirror, branch, facts, lakefs, lease)
        except Fenced:
            raise
        except LakeMirrorError as error:
            log.warning("%s: branch %s: %s", mirror.name, branch.name, error)
            failed = failed or f"branch {branch.name}: {error}"
    _note_strays(mirror, heads)
    if moved:
        duties.wake("manage", mirror.pk)  # which writes the certificates
    Mirror.objects.filter(pk=mirror.pk).update(destination_looked_at=datetime.now(UTC))
    if failed:
        raise LakeMirrorRetry(failed)
    return Outcome(f"{moved} branches moved, {len(heads)} at the destination")


class LakeMirrorRetry(LakeMirrorError):
    """Some branches could not be moved this time; the others were."""

    retryable = True


# Facts


def gather_facts(mirror: Mirror, heads: dict[str, str]) -> list[tuple[SourceBranch, BranchFacts]]:
    """What `choose_promotion` needs, for branches that are not at rest. Few queries, however many branches."""
    ours = {b.name: b for b in mirror.branches.all()}
    stirring = [b for b in mirror.source.branches.all() if not _is_at_rest(b, ours.get(b.name), heads)]
    candidates = _candidates(stirring, ours)
    return [
        (
            branch,
            BranchFacts(
                candidates=candidates[branch.pk],
                head=heads.get(branch.name, ""),
                position=ours[branch.name].position if branch.name in ours else -1,
                gone=branch.gone_at is not None,
                default=branch.name == mirror.source.default_branch,
            ),
        )
        for branch in stirring
    ]


def _is_at_rest(branch: SourceBranch, ours: MirrorBranch | None, heads: dict[str, str]) -> bool:
    """At its newest candidate, in our books and at the destination; or gone at both."""
    if branch.gone_at is not None:
        return branch.name not in heads and ours is None
    return ours is not None and ours.position == branch.position and heads.get(branch.name) == branch.head == ours.head


def _candidates(branches: list[SourceBranch], ours: dict[str, MirrorBranch]) -> dict[int, list[CandidateCommit]]:
    found: dict[int, list[CandidateCommit]] = defaultdict(list)
    least = {b.pk: ours[b.name].position if b.name in ours else -1 for b in branches}
    for start in range(0, len(branches), 500):
        keys = [b.pk for b in branches[start : start + 500]]
        rows = Candidate.objects.filter(branch__in=keys, position__gte=min(least[key] for key in keys))
        for branch, sha, position, forward in rows.order_by("branch_id", "position").values_list(
            "branch_id", "commit__sha", "position", "fast_forward"
        ):
            if position >= least[branch]:
                found[branch].append(CandidateCommit(sha, position, forward))
    return found


def _promotable(mirror: Mirror, facts: BranchFacts) -> set[str]:
    shas = [c.commit_id for c in facts.candidates]
    found: set[str] = set()
    for start in range(0, len(shas), 500):
        rows = mirror.commits.promotable().filter(commit__sha__in=shas[start : start + 500])
        found.update(rows.values_list("commit__sha", flat=True))
    return found


# Decision, act, read back


def _settle_branch(mirror: Mirror, branch: SourceBranch, facts: BranchFacts, lakefs: LakeFS, lease: Lease) -> int:
    decision = choose_promotion(facts, _promotable(mirror, facts).__contains__)
    if decision.action is Action.NOTHING:
        _remember_position(mirror, branch, facts, decision)
        return 0
    fence(mirror, lakefs, lease)
    _act(mirror, branch, decision, lakefs)
    head = read_back(lakefs, mirror, branch.name)
    if head != decision.commit_id:
        MirrorBranch.objects.filter(mirror=mirror, name=branch.name).update(head=head, position=-1)
        raise LakeMirrorRetry(
            f"{branch.name} reads {head[:8] or 'nothing'} after it was moved to {decision.commit_id[:8] or 'nothing'}"
        )
    _record(mirror, branch, facts, decision)
    return 1


def fence(mirror: Mirror, lakefs: LakeFS, lease: Lease) -> None:
    """Before each forced call: the lease is ours for long enough, and the destination is still what we pinned."""
    require_pinned(mirror, lakefs)
    lease.fence(CALL_SECONDS)


def _act(mirror: Mirror, branch: SourceBranch, decision: Decision, lakefs: LakeFS) -> None:
    """One forced call. Whatever it answers, the branch is read back: the move may have taken place."""
    try:
        if decision.action is Action.CREATE:
            lakefs.create_branch(mirror.name, branch.name, decision.commit_id)
        elif decision.action is Action.RESET:
            lakefs.hard_reset_branch(mirror.name, branch.name, decision.commit_id)
        else:
            lakefs.delete_branch(mirror.name, branch.name)
    except (Conflict, NotFound, NoData, Denied) as error:
        log.warning("%s: %s", mirror.name, error)
    except LakeMirrorError as error:
        if not error.retryable:
            raise
        log.warning("%s: reading back after: %s", mirror.name, error)


def read_back(lakefs: LakeFS, mirror: Mirror, branch: str) -> str:
    """What the destination says that the branch points at; "" when there is none."""
    try:
        return lakefs.get_branch(mirror.name, branch).commit_id
    except NotFound:
        return ""


def _remember_position(mirror: Mirror, branch: SourceBranch, facts: BranchFacts, decision: Decision) -> None:
    """The destination is where it should be although our books said otherwise (a crash after the move)."""
    if decision.position >= 0 and facts.head and facts.head == decision.commit_id:
        _record(mirror, branch, facts, decision, moved=False)
    elif branch.gone_at is not None and not facts.head:
        mirror.branches.filter(name=branch.name).delete()


def _record(
    mirror: Mirror, branch: SourceBranch, facts: BranchFacts, decision: Decision, *, moved: bool = True
) -> None:
    now = datetime.now(UTC)
    known = mirror.branches.filter(name=branch.name).values_list("position", flat=True).first()
    if not moved and known == decision.position:
        return
    with transaction.atomic():
        Promotion.objects.create(
            mirror=mirror,
            branch=branch.name,
            from_commit=facts.head if moved else "",
            to_commit=decision.commit_id,
            why=decision.why,
            at=now,
        )
        if decision.action is Action.DELETE:
            mirror.branches.filter(name=branch.name).delete()
            return
        MirrorBranch.objects.update_or_create(
            mirror=mirror,
            name=branch.name,
            defaults={"head": decision.commit_id, "position": decision.position, "advanced_at": now, "stray": False},
        )
        mirror.commits.filter(commit__sha=decision.commit_id, promoted_at=None).update(promoted_at=now)
        passed = superseded(facts.candidates, after=facts.position, before=decision.position)
        for start in range(0, len(passed), 500):
            rows = mirror.commits.filter(
                commit__sha__in=passed[start : start + 500], promoted_at=None, superseded_at=None
            )
            rows.update(superseded_at=now)
    log.info("%s: %s is now at %s (%s)", mirror.name, branch.name, decision.commit_id[:8] or "nothing", decision.why)


def _note_strays(mirror: Mirror, heads: dict[str, str]) -> None:
    """Branches at the destination that the source never had: shown, never touched."""
    if not mirror.source.branches.filter(position__gte=0).exists():
        return  # the source was not looked at since its rows were made
    ours = set(mirror.source.branches.values_list("name", flat=True))
    strays = heads.keys() - ours
    mirror.branches.filter(stray=True).exclude(name__in=strays).delete()
    for name in strays:
        MirrorBranch.objects.update_or_create(mirror=mirror, name=name, defaults={"head": heads[name], "stray": True})
