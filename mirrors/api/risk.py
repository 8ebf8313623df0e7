"""The replication API: how much is at risk at a mirror."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.mirroring.explain.gc_rules import both_of, own_rules_warning, unread_rules_note
from core.mirroring.states import ASIDE
from core.text.phrases import count
from db import clock
from jobs.job_ids import accepted, duty_url
from mirrors.api.mirrors import find_mirror
from mirrors.api.risk_schemas import LagPageAnswer, LossPageAnswer, PrioritisedAnswer, UnreachedPageAnswer
from mirrors.models import Mirror, MirrorDuty
from mirrors.queries.branch_positions import BranchPosition
from mirrors.queries.gc_exposure import AllUnreached, Gone, Unreached, gone_of, unreached_of
from mirrors.queries.unreplicated import Loss, losses_of
from mirrors.services.priority import mirror_prioritise
from mirrors.services.rights import require_operation_of, require_sight_of
from mirrors.status.lag_panel import loss_doubts
from mirrors.status.mirror import BranchStatus, MirrorStatus, mirror_statuses
from mirrors.transitions.rpo_breaches import Kept, target_of, targets_kept
from web.openapi import answers
from web.paging import PAGE, a_page, number_of, page_of
from web.schemas import LOCATION
from web.serializers import Body, rfc3339


class GcSafety(APIView):
    """What the source's garbage collection may take, or has taken, before it arrived."""

    tag = "risk"

    @answers("Get GC safety", 200, UnreachedPageAnswer, query=PAGE)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """What is gone, and a page of the pending commits that no branch of the source leads to any more, the newest
        first. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        require_sight_of(request.user, mirror_id)
        amount, after = page_of(request)
        mirror = find_mirror(repository, mirror_id)
        unreached = unreached_of(mirror)
        below = number_of(after, "after") if after else None
        commits = [commit for commit in unreached.commits if below is None or commit.key < below]
        commits, pagination = a_page(commits, amount, lambda commit: commit.key)
        return Response(
            pagination
            | {
                "as_of": rfc3339(mirror.source.looked_at),
                **_rules_json(mirror),
                "gone": _lost_json(gone_of(mirror)),
                "unreached": _all_unreached_json(unreached) if mirror.source.looked_at else None,
                "results": [_unreached_json(commit) for commit in commits],
            }
        )


def _rules_json(mirror: Mirror) -> dict[str, Any]:
    """What the source keeps, by its rules; whether the mirror's repository has rules of its own; what of it is not
    known."""
    both = both_of(mirror.gc_rules)
    source = mirror.source.name
    warning = own_rules_warning(both, name=mirror.name, source=source, namespace=mirror.namespace)
    unread = f"the garbage-collection rules of {source}: not read yet" if both is None else ""
    rules = both.source.rules if both else None
    return {
        "retention_days": rules.default_days if rules else None,
        "branch_retention_days": dict(rules.branches) if rules else {},
        "rules_read_at": rfc3339(mirror.gc_rules_at),
        "warnings": [warning] if warning else [],
        "not_known": list(filter(None, [unread, unread_rules_note(both, name=mirror.name)])),
    }


def _lost_json(lost: Gone) -> dict[str, Any]:
    return {
        "objects": lost.kinds.get("object", 0),
        "ranges": lost.kinds.get("range", 0),
        "metaranges": lost.kinds.get("metarange", 0),
        "commits": lost.commits,
        "heads": [{"branch": branch, "commit": commit} for branch, commit in lost.heads],
        "since": rfc3339(lost.since),
        "examples": [
            {"kind": row.kind, "path": row.path or None, "address": row.address, "first_seen": rfc3339(row.first_seen)}
            for row in lost.examples
        ],
    }


def _all_unreached_json(unreached: AllUnreached) -> dict[str, Any]:
    """`objects` and `bytes` are those that have not arrived; null while `unchecked_commits` were not looked through."""
    missing = unreached.missing
    return {
        "commits": len(unreached.commits),
        "at_least": unreached.at_least,
        "objects": missing.objects,
        "bytes": missing.bytes,
        "unchecked_commits": missing.unchecked,
        "since": rfc3339(min((commit.last.since for commit in unreached.commits), default=None)),
    }


def _unreached_json(commit: Unreached) -> dict[str, Any]:
    return {
        "commit": commit.sha,
        "data": commit.data,
        "seen_at": rfc3339(commit.seen_at),
        "branch": commit.last.branch,
        "why": commit.last.why,
        "since": rfc3339(commit.last.since),
    }


class Prioritised(Body):
    """The body of POST: a branch or a commit."""

    branch = serializers.CharField(max_length=256, required=False)
    commit = serializers.RegexField(r"^[0-9a-f]{64}\Z", required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        super().validate(attrs)
        if len(attrs) != 1:
            raise serializers.ValidationError({"branch": "give one of branch and commit"})
        return attrs


class Prioritise(APIView):
    """Have a branch or a commit copied and checked before all others."""

    tag = "risk"

    @answers("Prioritise a commit", 202, PrioritisedAnswer, body=Prioritised, query=[LOCATION])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """202 with the commit, and whether anything is left to do for it. Needs fs:OperateMirror on the source or the
        mirror."""
        require_operation_of(request.user, repository, mirror_id)
        body = Prioritised(data=request.data)
        body.is_valid(raise_exception=True)
        mirror = find_mirror(repository, mirror_id)
        row = mirror_prioritise(actor=request.user, mirror=mirror, **body.validated_data)
        first = mirror.commits.filter(pk=row.pk, urgency__gt=0).exists()
        answer = {"commit": row.commit.sha, "prioritised": first, "as_of": rfc3339(clock.now())}
        return accepted(answer, duty_url(MirrorDuty.COPY_RECORDS, mirror.pk) if first else None)


MOST_AUTHORS = 20


class Lag(APIView):
    """How late the branches of a mirror are, and how well they kept its target."""

    tag = "risk"

    @answers("Get lag", 200, LagPageAnswer, query=PAGE)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of branches by name. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        require_sight_of(request.user, mirror_id)
        amount, after = page_of(request)
        [reading] = mirror_statuses([find_mirror(repository, mirror_id)])
        branches = [branch for branch in reading.branches if branch.name > after]
        branches, pagination = a_page(branches, amount, lambda branch: branch.name)
        attainments = targets_kept(reading.mirror, [branch.name for branch in branches], reading.as_of)
        results = [_lag_json(branch, attainments[branch.name], reading) for branch in branches]
        return Response(pagination | _about_lag(reading) | {"results": results})


class Losses(APIView):
    """What would be lost if the source failed now."""

    tag = "risk"

    @answers("Get loss", 200, LossPageAnswer, query=PAGE)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """Together, and a page of the branches that are behind, by name. Needs fs:ListRepositories on `*`, or
        fs:ReadRepository on the mirror."""
        require_sight_of(request.user, mirror_id)
        amount, after = page_of(request)
        mirror, now = find_mirror(repository, mirror_id), clock.now()
        losses = losses_of(mirror, after, amount + 1)
        shown, pagination = a_page(losses.branches, amount, lambda row: row[0].key[1])
        looked_at = mirror.source.looked_at
        return Response(
            pagination
            | {
                "as_of": rfc3339(looked_at),
                "unseen_seconds": None if looked_at is None else round((now - looked_at).total_seconds(), 3),
                "not_counted": _not_counted(mirror, losses.unproven) + loss_doubts(mirror, losses, now),
                "branches_behind": None if looked_at is None else losses.behind,
                "together": _loss_json(losses.together) if looked_at else None,
                "results": [_branch_loss_json(place, loss) for place, loss in shown],
            }
        )


def _not_counted(mirror: Mirror, unproven: int) -> list[str]:
    """What would be lost too, or may be, in words."""
    looked_at = rfc3339(mirror.source.looked_at)
    since = f"since {looked_at}, when its branches were last read" if looked_at else ": they have not been read yet"
    lines = [f"what was committed in {mirror.source.region} {since}", "uncommitted changes", "tags"]
    if not mirror.selection.everything:
        lines.append("branches that are not selected")
    if unproven:
        lines.append(
            f"what is missing of heads that are not known to be complete ({count(unproven, 'branch', 'branches')})"
        )
    if mirror.source.look_error:
        lines.append(f"what the last check could not read: {mirror.source.look_error}")
    return lines


def _loss_json(loss: Loss) -> dict[str, Any]:
    """`objects` and `bytes` are those that have not arrived; null while `unchecked_commits` were not looked through."""
    tally, missing = loss.tally, loss.missing
    return {
        "commits": tally.commits,
        "at_least": loss.at_least,
        "objects": missing.objects,
        "bytes": missing.bytes,
        "unchecked_commits": missing.unchecked,
        "oldest_seen_at": rfc3339(tally.oldest),
        "authors": [{"committer": who, "commits": number} for who, number in tally.authors.most_common(MOST_AUTHORS)],
        "more_authors": max(0, len(tally.authors) - MOST_AUTHORS),
    }


def _branch_loss_json(place: BranchPosition, loss: Loss) -> dict[str, Any]:
    head = place.mirror.head if place.mirror else ""
    source = place.unread_head or (place.source.head if place.source else "")
    return {"branch": place.key[1], "source_head": source or None, "mirror_head": head or None, **_loss_json(loss)}


def _about_lag(reading: MirrorStatus) -> dict[str, Any]:
    """What holds for all branches."""
    return {
        "rpo_seconds": reading.mirror.rpo_seconds,
        "target_seconds": int(target_of(reading.mirror).total_seconds()),
        "watched_since": rfc3339(reading.mirror.watched_since),
        "looked_at": rfc3339(reading.looked_at),
        "as_of": rfc3339(reading.as_of),
    }


def _lag_json(branch: BranchStatus, attainment: Kept, reading: MirrorStatus) -> dict[str, Any]:
    """A branch that is gone at the source, or not mirrored, has no target to keep."""
    counts = branch.state not in ASIDE
    share = attainment.share if counts else None
    return {
        "branch": branch.name,
        "status": branch.state.word,
        "lag_seconds": None if branch.lag is None else round(branch.lag, 3),
        "pending_commits": branch.pending,
        "oldest_pending_seen_at": rfc3339(branch.seen_at),
        "attainment_30d": None if share is None else round(share, 6),
        "measured_since": rfc3339(attainment.since) if counts else None,
        "unknown_seconds": round(attainment.unknown.total_seconds(), 3) if share is not None else None,
        "breaches": [
            {"began_at": rfc3339(breach.began_at), "ended_at": rfc3339(breach.ended_at)}
            for breach in attainment.breaches
        ],
    }
