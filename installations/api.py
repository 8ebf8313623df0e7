"""The replication API: installations, the regions that one may mirror, export and replicate from and to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import Invalid
from core.installations.outages import OutageKind, Service
from core.installations.settings import LONGEST, Access
from db import clock
from installations.connection_test import installation_test, passed
from installations.needed_rights import Policies, installation_policies
from installations.services import (
    CREATE,
    DELETE,
    LIST,
    TEST,
    UPDATE,
    installation_arn,
    installation_create,
    installation_delete,
    installation_update,
    wish_of,
)
from installations.status import InstallationReading, installation_json, installation_reading, installation_readings
from rbac import services as rbac
from web.etags import seen
from web.openapi import IF_MATCH, answers, etag
from web.paging import PAGE, a_page, page_of
from web.schemas import CheckAnswer, many_texts, page_answer, text_or_null, time_or_null
from web.serializers import TrueOrFalse, rfc3339


class Word(serializers.CharField):
    """A text in JSON, and no number that looks like one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=LONGEST, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be text")
        return super().to_internal_value(data)


def may_be_empty() -> Word:
    """A setting that need not be there."""
    return Word(required=False, allow_blank=True)


class InstallationSettings(serializers.Serializer):
    """The body of PUT: all settings but the name; a secret that isn't given stays as it is. Empty lakefs_endpoint and
    lakefs_access_key_id: a store without a lakeFS."""

    lakefs_endpoint = Word(allow_blank=True)
    lakefs_access_key_id = Word(allow_blank=True)
    lakefs_secret_access_key = Word(required=False, write_only=True)
    served_by = may_be_empty()
    store_endpoint = may_be_empty()
    store_region = may_be_empty()
    store_path_style = TrueOrFalse(required=False)
    store_access = serializers.ChoiceField(choices=[choice.value for choice in Access], required=False)
    store_access_key_id = may_be_empty()
    store_secret_access_key = Word(required=False, write_only=True)
    store_profile = may_be_empty()
    store_role_arn = may_be_empty()
    store_role_external_id = may_be_empty()
    sts_endpoint = may_be_empty()
    ca_bundle = may_be_empty()
    proxy = may_be_empty()


class InstallationCreation(InstallationSettings):
    """The body of POST: the region's name, and its settings with their secrets. Without lakefs_endpoint it is a store
    for replication rules."""

    region = Word()
    lakefs_endpoint = may_be_empty()
    lakefs_access_key_id = may_be_empty()


class InstallationTry(serializers.Serializer):
    """The body of a test: a place to test the store with; where there is a lakeFS it may be empty."""

    namespace = may_be_empty()


class InUseAnswer(serializers.Serializer):
    """How many of something need it."""

    what = serializers.CharField()
    number = serializers.IntegerField()


class ServiceOutageAnswer(serializers.Serializer):
    """A service of the region that does not answer, or does not let us in."""

    service = serializers.ChoiceField([service.value for service in Service], help_text="lakeFS, or the store")
    status = serializers.ChoiceField([kind.value for kind in OutageKind])
    since = serializers.DateTimeField()
    problem = serializers.CharField(help_text="the result of the last call")


class InstallationAnswer(serializers.Serializer):
    """An installation without its secrets. `origin`: file or database; `problem`: why its secrets can't be used. An
    empty `lakefs_endpoint`: a store alone."""

    region = serializers.CharField()
    origin = serializers.ChoiceField(choices=["file", "database"])
    problem = text_or_null()
    served_by = serializers.CharField(allow_blank=True)
    lakefs_endpoint = serializers.CharField(allow_blank=True)
    lakefs_access_key_id = serializers.CharField(allow_blank=True)
    store_endpoint = serializers.CharField(allow_blank=True)
    store_region = serializers.CharField(allow_blank=True)
    store_path_style = serializers.BooleanField()
    store_access = serializers.ChoiceField(choices=[choice.value for choice in Access])
    store_access_key_id = serializers.CharField(allow_blank=True)
    store_profile = serializers.CharField(allow_blank=True)
    store_role_arn = serializers.CharField(allow_blank=True)
    store_role_external_id = serializers.CharField(allow_blank=True)
    sts_endpoint = serializers.CharField(allow_blank=True)
    ca_bundle = serializers.CharField(allow_blank=True)
    proxy = serializers.CharField(allow_blank=True)
    used_by = InUseAnswer(many=True)
    lakefs_version = text_or_null()
    last_contact_at = time_or_null()
    outages = ServiceOutageAnswer(many=True)
    lakefs_certificate_until = time_or_null()
    store_certificate_until = time_or_null()
    tested_at = time_or_null()
    ok = serializers.BooleanField(allow_null=True)


class InstallationTestAnswer(serializers.Serializer):
    """Every check; `ok`: nothing failed, and lakeFS lets us in, or without one the store shows us the place."""

    ok = serializers.BooleanField()
    lakefs_version = text_or_null()
    checks = CheckAnswer(many=True)
    as_of = serializers.DateTimeField()


class RightsAnswer(serializers.Serializer):
    """A statement of lakeFS's; several resources are text that holds a JSON list."""

    effect = serializers.ChoiceField(choices=["allow"])
    action = many_texts()
    resource = serializers.CharField()


class LakeFSPolicyAnswer(serializers.Serializer):
    """A policy as lakeFS takes it, for our user there."""

    id = serializers.CharField()
    statement = RightsAnswer(many=True)


class StoreStatementAnswer(serializers.Serializer):
    """A statement of AWS's."""

    Effect = serializers.ChoiceField(choices=["Allow"])
    Action = many_texts()
    Resource = many_texts()


class StorePolicyAnswer(serializers.Serializer):
    """A policy as S3 has them, for our user or role there."""

    Version = serializers.CharField()
    Statement = StoreStatementAnswer(many=True)


class PoliciesAnswer(serializers.Serializer):
    """What our user needs at a region's lakeFS, and our key at its store (null: no place there is known)."""

    region = serializers.CharField()
    lakefs = LakeFSPolicyAnswer()
    store = StorePolicyAnswer(allow_null=True)


class InstallationPoliciesAnswer(PoliciesAnswer):
    """The same for all that is done there (`lakefs` null: it has no lakeFS); `left_out`: so much of it the caller may
    not see, and it is not in these."""

    lakefs = LakeFSPolicyAnswer(allow_null=True)
    left_out = serializers.IntegerField()
    as_of = serializers.DateTimeField()


def policies_json(region: str, policies: Policies) -> dict[str, Any]:
    """The policies of one region."""
    return {"region": region, "lakefs": policies.lakefs, "store": policies.store}


class Installations(APIView):
    """All installations: list them, add one."""

    tag = "installations"

    @answers("List installations", 200, page_answer(InstallationAnswer), query=PAGE)
    def get(self, request: Request) -> Response:
        """A page of installations by name. Needs fs:ListInstallations on `*`."""
        rbac.require(request.user, (LIST, "*"))
        amount, after = page_of(request)
        readings = sorted(installation_readings(), key=lambda reading: reading.region)
        page, pagination = a_page(
            [reading for reading in readings if reading.region > after], amount, lambda reading: reading.region
        )
        return Response(pagination | {"results": [installation_json(reading) for reading in page]})

    @answers("Add an installation", 201, InstallationAnswer, body=InstallationCreation, query=[etag(201)])
    def post(self, request: Request) -> Response:
        """201: it may be used within seconds, without a restart. Needs auth:CreateInstallation on its ARN."""
        given = body_of(InstallationCreation, request)
        rbac.require(request.user, (CREATE, installation_arn(given["region"])))
        wish, secrets = wish_of(given)
        row = installation_create(actor=request.user, wish=wish, secrets=secrets)
        return _answer(installation_reading(row.region), 201)


class InstallationDetail(APIView):
    """One installation."""

    tag = "installations"

    @answers("Get an installation", 200, InstallationAnswer, query=[etag(200)])
    def get(self, request: Request, region: str) -> Response:
        """The installation, without its secrets. Needs fs:ListInstallations on `*`."""
        rbac.require(request.user, (LIST, "*"))
        return _answer(installation_reading(region))

    @answers(
        "Replace an installation",
        200,
        InstallationAnswer,
        body=InstallationSettings,
        query=[IF_MATCH, etag(200)],
        fails=[409, 412, 503],
    )
    def put(self, request: Request, region: str) -> Response:
        """Replace its settings; a secret that isn't given stays. Needs auth:UpdateInstallation on its ARN."""
        rbac.require(request.user, (UPDATE, installation_arn(region)))
        wish, secrets = wish_of({**body_of(InstallationSettings, request), "region": region})
        if_match = seen(request.headers.get("If-Match", ""))
        installation_update(actor=request.user, region=region, wish=wish, secrets=secrets, seen=if_match)
        return _answer(installation_reading(region))

    @answers("Delete an installation", 204, query=[IF_MATCH], fails=[409, 412])
    def delete(self, request: Request, region: str) -> Response:
        """Forget it. 409 while something uses it. Needs auth:DeleteInstallation on its ARN."""
        rbac.require(request.user, (DELETE, installation_arn(region)))
        if_match = seen(request.headers.get("If-Match", ""))
        installation_delete(actor=request.user, region=region, seen=if_match)
        return Response(status=204)


class InstallationPolicies(APIView):
    """What our user needs there."""

    tag = "installations"

    @answers("Get the policies of an installation", 200, InstallationPoliciesAnswer)
    def get(self, request: Request, region: str) -> Response:
        """Policies for lakeFS and for the store, of what mirrors and exports need there now; without any, for whatever
        may come. Needs fs:ListInstallations on `*`."""
        rbac.require(request.user, (LIST, "*"))
        policies = installation_policies(request.user, region)
        told = {"left_out": policies.left_out, "as_of": rfc3339(clock.now())}
        return Response(policies_json(region, policies) | told)


class InstallationTested(APIView):
    """Whether it works."""

    tag = "installations"

    @answers("Test an installation", 200, InstallationTestAnswer, body=InstallationTry)
    def post(self, request: Request, region: str) -> Response:
        """200 with every check, whatever they come to. Needs auth:TestInstallation on its ARN."""
        rbac.require(request.user, (TEST, installation_arn(region)))
        given = body_of(InstallationTry, request)
        test = installation_test(actor=request.user, region=region, namespace=given.get("namespace", ""))
        return Response(
            {
                "ok": passed(test),
                "lakefs_version": test.lakefs_version or None,
                "checks": test.checks,
                "as_of": rfc3339(test.tested_at),
            }
        )


def body_of(kind: type[serializers.Serializer], request: Request) -> Mapping[str, Any]:
    """The fields of a body. One that isn't known is refused: what is misspelt would else silently be empty."""
    data = request.data or {}
    if not isinstance(data, dict):
        raise Invalid("expected a JSON object")
    body = kind(data=data)
    if unknown := sorted(data.keys() - body.fields.keys()):
        raise Invalid(f"there is no such setting; known are {', '.join(body.fields)}", field=unknown[0][:80])
    body.is_valid(raise_exception=True)
    validated: Mapping[str, Any] = body.validated_data
    return validated


def _answer(reading: InstallationReading, status: int = 200) -> Response:
    headers = {"ETag": reading.etag} if reading.etag else {}
    return Response(installation_json(reading), status=status, headers=headers)
