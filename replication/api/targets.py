"""The replication API: targets that a rule is given later, and those that are taken from it."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.replicating.wishes import WORKERS, TargetWish
from replication.api.bodies import LONGEST_URI, limit
from replication.api.fields import Text
from replication.api.rules import permitted, rule_answer
from replication.api.serializers import RuleAnswer, RuleCheckedAnswer, checked
from replication.preflight.checks import check_target_plan
from replication.services import targets
from replication.services.rules import UPDATE, find_rule
from web.openapi import answers, etag
from web.schemas import check_json
from web.serializers import Body, TrueOrFalse, rfc3339


class LinkCreation(Body):
    """One more target of a rule."""

    region = Text(max_length=64)
    uri = Text(max_length=LONGEST_URI, help_text="s3://BUCKET[/PREFIX]")
    workers = limit("workers", default=WORKERS, help_text="objects at once")
    bytes_per_second = limit("bytes_per_second", default=None)
    objects_per_second = limit("objects_per_second", default=None)
    overwrite = TrueOrFalse(
        required=False, help_text="it need not be empty: what differs from the source there may be replaced"
    )

    def wish(self) -> TargetWish:
        """What the service takes."""
        return TargetWish(**{name: value for name, value in self.validated_data.items() if name != "overwrite"})

    @property
    def overwrites(self) -> bool:
        """Whether it need not be empty. Of a body that is valid."""
        return bool(self.validated_data.get("overwrite", False))


class RuleLinks(APIView):
    """Give a rule another target."""

    tag = "rules"

    @answers("Add a target to a replication rule", 201, RuleAnswer, body=LinkCreation, query=[etag(201)])
    def post(self, request: Request, rule: str) -> Response:
        """201 with the rule: its places are compared at once, and what the new target lacks is copied. 409 for a target
        of another rule, one that is not empty, and one that is just being removed; 503 while a store does not answer:
        then nothing is stored. Needs fs:UpdateReplicationRule on the rule, and fs:AttachStorageNamespace on
        namespace/{uri}."""
        permitted(request, UPDATE, rule)
        body = LinkCreation(data=request.data)
        checked(body)
        targets.link_add(actor=request.user, name=rule, wish=body.wish(), overwrite=body.overwrites)
        return rule_answer(request, find_rule(rule), 201)


class LinkPreflight(APIView):
    """Check a target that somebody thinks of."""

    tag = "rules"

    @answers("Check a target for a replication rule", 200, RuleCheckedAnswer, body=LinkCreation)
    def post(self, request: Request, rule: str) -> Response:
        """The body of POST `/rules/{rule}/links`; nothing is stored. Its checks are called `target-1`. Below the target
        an object is written, read and removed again. Needs what adding needs."""
        permitted(request, UPDATE, rule)
        body = LinkCreation(data=request.data)
        checked(body)
        preflight = check_target_plan(
            actor=request.user, rule=find_rule(rule), target=body.wish(), overwrite=body.overwrites, writing=True
        )
        checks = [check_json(check) for check in preflight.checks]
        return Response({"ok": preflight.ok, "checks": checks, "as_of": rfc3339(preflight.as_of)})


class LinkDetail(APIView):
    """One target of a rule."""

    tag = "rules"

    @answers("Remove a target from a replication rule", 204, fails=[409])
    def delete(self, request: Request, rule: str, number: int) -> Response:
        """Copy to it no more. No object is deleted. 409 for the only one. Its number is never given again; its place is
        free once the rule's `removing` does not name it any more. Needs fs:UpdateReplicationRule on the rule."""
        permitted(request, UPDATE, rule)
        targets.link_remove(actor=request.user, name=rule, number=number)
        return Response(status=204)
