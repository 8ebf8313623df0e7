"""The replication API: the branches and the commits of a mirror."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import Invalid
from core.mirroring.states import State
from db import clock
from mirrors.api.commit_schemas import CertificateAnswer, CommitAnswer, CommitDetailAnswer
from mirrors.api.mirrors import find_visible
from mirrors.api.schemas import BranchAnswer
from mirrors.models import MirrorCommit
from mirrors.models.waived import told_waivers
from mirrors.queries.certificates import certify
from mirrors.queries.coverage import commit_coverage
from mirrors.queries.find_commit import find_commit
from mirrors.queries.missing import commit_facts
from mirrors.queries.proof_facts import is_at_its_store, judge, row_of
from mirrors.status.commit_json import STAGES, commit_json, commits_of, commits_of_branch, coverage_json, facts_of
from mirrors.status.mirror import branch_json, mirror_statuses, thing_json
from mirrors.status.outages import outage_json, outages_by_mirror
from web.openapi import answers
from web.paging import PAGE, a_page, by_number, one_of, page_of
from web.schemas import page_answer
from web.serializers import rfc3339

STATUS = OpenApiParameter("status", str, description="only those in this state, by its code or in words")
OF_COMMITS = (
    OpenApiParameter("branch", str, description="only those that this branch of the source pointed to, in that order"),
    OpenApiParameter("stage", str, enum=list(STAGES), description="only those at this stage"),
    OpenApiParameter("data", str, enum=MirrorCommit.Data.values, description="only those whose data is in this state"),
)


class Branches(APIView):
    """The branches of a mirror."""

    tag = "commits"

    @answers("List branches", 200, page_answer(BranchAnswer), query=[*PAGE, STATUS])
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of branches by name, as the mirror itself tells of them. Needs fs:ListRepositories on `*`, or
        fs:ReadRepository on the mirror."""
        mirror = find_visible(request, repository, mirror_id)
        amount, after = page_of(request)
        state = state_of(request)
        branches = mirror_statuses([mirror])[0].branches
        rows = [row for row in branches if row.name > after and state in (None, row.state)]
        page, pagination = a_page(rows, amount, lambda row: row.name)
        return Response(pagination | {"results": [branch_json(row) for row in page]})


class Commits(APIView):
    """The commits of a mirror."""

    tag = "commits"

    @answers("List commits", 200, page_answer(CommitAnswer), query=[*PAGE, *OF_COMMITS])
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of commits, the last one seen first. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the
        mirror."""
        mirror = find_visible(request, repository, mirror_id)
        data = one_of(request, "data", MirrorCommit.Data.values)
        rows, column = commits_of(mirror, stage=one_of(request, "stage", STAGES), data=data), "commit_id"
        if branch := request.query_params.get("branch"):
            rows, column = commits_of_branch(rows, mirror, branch), "position"
        here = is_at_its_store(mirror)
        return Response(by_number(request, rows, lambda row: _row_json(row, here=here), column, newest=True))


def _row_json(row: MirrorCommit, *, here: bool) -> dict[str, Any]:
    """A line of the list; `here`: the mirror's region has the store that its commits were checked at."""
    facts = facts_of(row)
    return commit_json(row.commit, facts) | {"promotable": facts.promotable and here}


class CommitDetail(APIView):
    """A commit at a mirror."""

    tag = "commits"

    @answers("Get a commit", 200, CommitDetailAnswer, fails=[409])
    def get(self, request: Request, repository: str, mirror_id: str, commit: str) -> Response:
        """How far it has come, what is covered of it, what it waits for. Needs fs:ListRepositories on `*`, or
        fs:ReadRepository on the mirror."""
        mirror = find_visible(request, repository, mirror_id)
        commit_row, now = find_commit(mirror, commit), clock.now()
        facts = commit_facts(mirror, [commit_row.sha])[commit_row.sha]
        covered = commit_coverage(mirror, commit_row.metarange_id) if facts.metadata_at else None
        more = {
            "coverage": coverage_json(covered, now),
            "promotable": judge(mirror, row_of(mirror, commit_row.sha)).allowed,
            "blockers_total": facts.lacking,
            "blockers": [thing_json(thing) for thing in facts.things],
            "outages": [outage_json(outage, now) for outage in outages_by_mirror([mirror], now).get(mirror.pk, ())],
            "as_of": rfc3339(now),
        }
        return Response(commit_json(commit_row, facts) | more)


class CommitCertificate(APIView):
    """What was proven of a commit at a mirror."""

    tag = "commits"

    @answers("Get a certificate", 200, CertificateAnswer, fails=[409, 502, 503])
    def get(self, request: Request, repository: str, mirror_id: str, commit: str) -> Response:
        """Its certificate, gathered anew; 404 says what it still lacks. Needs fs:ListRepositories on `*`, or
        fs:ReadRepository on the mirror."""
        mirror = find_visible(request, repository, mirror_id)
        certificate = certify(mirror, find_commit(mirror, commit))
        return Response(certificate.document(as_of=rfc3339(clock.now()), waivers=told_waivers(mirror)))


def state_of(request: Request) -> State | None:
    """The state that `?status=` asks for, by its code or in the words of the answers. Raises Invalid."""
    given = request.query_params.get(STATUS.name, "")
    try:
        return State(given.lower().replace(" ", "_")) if given else None
    except ValueError:
        known = ", ".join(state.value for state in State)
        raise Invalid(f"'{given[:40]}' is not one of {known}", field=STATUS.name) from None
