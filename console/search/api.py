"""The replication API: one text looked for among all that the caller may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.search.find import LONGEST, BranchHit, CommitHit, Hits, PathHit, search, text_of
from db import clock
from exports.models import Export
from mirrors.models import Mirror, Repository
from mirrors.services.rights import require_sight
from replication.models import Rule
from web.openapi import answers
from web.schemas import many_texts
from web.serializers import rfc3339

Q = OpenApiParameter(
    "q",
    {"type": "string", "minLength": 1, "maxLength": LONGEST},
    required=True,
    description="a part of a name, message or path; six digits or more of the id of a commit or metarange",
)


class RepositoryHitAnswer(serializers.Serializer):
    """A source repository that has mirrors."""

    name = serializers.CharField()
    region = serializers.CharField()


class MirrorHitAnswer(RepositoryHitAnswer):
    """A mirror; its source."""

    source_repository = serializers.CharField()
    source_region = serializers.CharField()


class CommitHitAnswer(serializers.Serializer):
    """A commit of a source, and the names of the mirrors that know it."""

    id = serializers.CharField()
    message = serializers.CharField(allow_blank=True)
    metarange_id = serializers.CharField(allow_blank=True)
    found_by = serializers.ChoiceField(choices=["id", "metarange", "message"])
    source_repository = serializers.CharField()
    source_region = serializers.CharField()
    mirrors = many_texts()


class BranchHitAnswer(serializers.Serializer):
    """A branch of a source, and the names of the source's mirrors."""

    name = serializers.CharField()
    head = serializers.CharField(allow_blank=True)
    source_repository = serializers.CharField()
    source_region = serializers.CharField()
    mirrors = many_texts()


class PathHitAnswer(serializers.Serializer):
    """A mirror that misses files whose path holds the text; `example` is one of the paths."""

    mirror = serializers.CharField()
    source_repository = serializers.CharField()
    blockers = serializers.IntegerField()
    oldest = serializers.DateTimeField()
    example = serializers.CharField()


class ExportHitAnswer(serializers.Serializer):
    """An export whose repository, branch, name or path holds the text."""

    repository = serializers.CharField()
    branch = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    region = serializers.CharField()
    export_path = serializers.CharField()


class RuleHitAnswer(serializers.Serializer):
    """A replication rule whose name, source or target holds the text."""

    name = serializers.CharField()
    source_region = serializers.CharField()
    source_uri = serializers.CharField()


class RegionHitAnswer(serializers.Serializer):
    """A region that has an installation."""

    name = serializers.CharField()


class UserHitAnswer(serializers.Serializer):
    """A user."""

    name = serializers.CharField()


def _hits(of: type[serializers.Serializer]) -> serializers.Serializer:
    fields = {
        "results": of(many=True),
        "has_more": serializers.BooleanField(),
        "looked_at_all": serializers.BooleanField(help_text="false: only the most recent rows"),
    }
    name = of.__name__.removesuffix("Answer") + "sAnswer"
    made: serializers.Serializer = type(name, (serializers.Serializer,), fields)()
    return made


class FoundAnswer(serializers.Serializer):
    """What fits, by kind: the first few of each."""

    q = serializers.CharField()
    as_of = serializers.DateTimeField()
    repositories = _hits(RepositoryHitAnswer)
    mirrors = _hits(MirrorHitAnswer)
    commits = _hits(CommitHitAnswer)
    branches = _hits(BranchHitAnswer)
    missing = _hits(PathHitAnswer)
    exports = _hits(ExportHitAnswer)
    rules = _hits(RuleHitAnswer)
    regions = _hits(RegionHitAnswer)
    users = _hits(UserHitAnswer)


class Search(APIView):
    """Where is that? Regions, repositories, mirrors, commits, branches, exports, rules, users, and missing files."""

    tag = "search"

    @answers("Search everything", 200, FoundAnswer, query=[Q])
    def get(self, request: Request) -> Response:
        """The first few of each kind. Needs fs:ListRepositories on `*`, or fs:ReadRepository on single mirrors; regions
        and users also need the right to list them."""
        require_sight(request.user)
        text = text_of(request.query_params.get("q", ""))
        results = search(Mirror.objects.visible_to(request.user), text, request.user)
        return Response(
            {
                "q": text,
                "as_of": rfc3339(clock.now()),
                "repositories": _hits_json(results.repositories, _repository),
                "mirrors": _hits_json(results.mirrors, _mirror),
                "commits": _hits_json(results.commits, _commit),
                "branches": _hits_json(results.branches, _branch),
                "missing": _hits_json(results.paths, _path),
                "exports": _hits_json(results.exports, _export),
                "rules": _hits_json(results.rules, _rule),
                "regions": _hits_json(results.regions, lambda region: {"name": region}),
                "users": _hits_json(results.users, lambda user: {"name": user.username}),
            }
        )


def _hits_json(hits: Hits[Any], to_json: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    results = [to_json(row) for row in hits.rows]
    return {"results": results, "has_more": hits.more, "looked_at_all": hits.looked_at_all}


def _repository(row: Repository) -> dict[str, Any]:
    return {"name": row.name, "region": row.region}


def _source(row: Repository) -> dict[str, Any]:
    return {"source_repository": row.name, "source_region": row.region}


def _mirror(row: Mirror) -> dict[str, Any]:
    return {"name": row.name, "region": row.region} | _source(row.source)


def _commit(hit: CommitHit) -> dict[str, Any]:
    commit = hit.commit
    about = {"id": commit.sha, "message": commit.message, "metarange_id": commit.metarange_id, "found_by": hit.by}
    return about | {"mirrors": hit.mirrors} | _source(commit.repository)


def _branch(hit: BranchHit) -> dict[str, Any]:
    branch = hit.branch
    return {"name": branch.name, "head": branch.head, "mirrors": hit.mirrors} | _source(branch.repository)


def _export(row: Export) -> dict[str, Any]:
    which = {"repository": row.repository, "branch": row.branch, "name": row.name, "region": row.region}
    return which | {"export_path": row.path}


def _rule(row: Rule) -> dict[str, Any]:
    return {"name": row.name, "source_region": row.region, "source_uri": row.uri}


def _path(hit: PathHit) -> dict[str, Any]:
    return {
        "mirror": hit.mirror.name,
        "source_repository": hit.mirror.source.name,
        "blockers": hit.things,
        "oldest": rfc3339(hit.oldest),
        "example": hit.example,
    }
