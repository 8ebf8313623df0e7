"""The preflight on the sandbox's servers: what the stand-ins of tests/mirrors/preflight/test_preflight.py claim."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from unittest import mock

import pytest

from adapters.lakefs import LakeFSAdapter
from adapters.s3.store import S3ObjectStore
from core.installations.preflight import CheckOutcome
from core.installations.unreplicated_objects import Namespaces
from core.ports import LakeFS, ObjectStore
from core.types import ObjectVersion
from db import clock
from deployment.wiring import clients
from jobs.models import Deployment
from mirrors.preflight.checks import Preflight, preflight
from mirrors.preflight.questions import Plan
from mirrors.preflight.unreplicated import Route, manifest
from rbac.models import User
from sandbox.client import Sandbox
from sandbox.lakefs_http import LakeFS as Http
from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan(sandbox_server: Sandbox) -> Iterator[Plan]:
    """A repository with a commit, to be mirrored where the sandbox brings its objects."""
    sandbox_server.heal()
    regions = {region.name: region for region in (sandbox_server.source, sandbox_server.destination)}
    source, destination = regions.values()
    name = f"planned-{uuid.uuid4().hex[:8]}"
    http = Http(source.lakefs_url)
    http.create_repository(name, f"s3://{source.bucket}/{name}")
    http.upload(name, "main", "a", b"1")
    http.commit(name, "main", "first", {})

    def lakefs(region: str) -> LakeFS:
        return LakeFSAdapter(regions[region].lakefs_url, ACCESS_KEY_ID, SECRET_ACCESS_KEY, tries=1)

    def objects(region: str) -> ObjectStore:
        keys = {"access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY}
        return S3ObjectStore(endpoint=regions[region].s3_url, force_path_style=True, tries=1, **keys)

    with (
        mock.patch("deployment.wiring.clients.quick_lakefs", lakefs),
        mock.patch("deployment.wiring.clients.quick_objects", objects),
    ):
        yield Plan(name, source.name, f"{name}-eu", destination.name, f"s3://{destination.bucket}/{name}")


def by_state(found: Preflight, state: CheckOutcome) -> dict[str, str]:
    return {check.id: check.message for check in found.checks if check.state is state}


def test_where_all_is_in_order_nothing_stands_in_the_way(sandbox_server: Sandbox, plan: Plan, owner: User) -> None:
    sandbox_server.wait_replicated()
    Deployment.objects.create(region=plan.region, serves=[plan.region], seen_at=clock.now())
    found = preflight(actor=owner, plan=plan)
    assert (by_state(found, CheckOutcome.FAILED), by_state(found, CheckOutcome.WARNING)) == ({}, {})
    assert {check_id for check_id in by_state(found, CheckOutcome.UNKNOWN) if "-right:" not in check_id} <= {
        "destination-metadata-prefix",
        "destination-proxy",
    }
    assert found.ok


@pytest.mark.parametrize(
    ("service", "mode", "check_id", "state"),
    [
        ("lakefs", "revoked", "destination-credentials", CheckOutcome.FAILED),
        ("lakefs", "denied", "destination-right:fs:ListBranches", CheckOutcome.FAILED),
        ("lakefs", "denied", "destination-right:fs:CreateBranch", CheckOutcome.UNKNOWN),
        ("lakefs", "error", "destination-reachable", CheckOutcome.FAILED),
        ("s3", "denied", "namespace-bucket", CheckOutcome.FAILED),
        ("s3", "denied", "destination-versioning", CheckOutcome.UNKNOWN),
        ("s3", "revoked", "namespace-bucket", CheckOutcome.FAILED),
    ],
)
def test_a_server_that_refuses_fails_the_check_that_is_about_it(
    sandbox_server: Sandbox, plan: Plan, owner: User, service: str, mode: str, check_id: str, state: CheckOutcome
) -> None:
    sandbox_server.server_faults(plan.region, service, mode)
    try:
        found = preflight(actor=owner, plan=plan)
    finally:
        sandbox_server.heal()
    assert check_id in by_state(found, state)
    assert not found.ok


def test_what_is_not_brought_is_counted_and_named_by_its_version(
    sandbox_server: Sandbox, plan: Plan, owner: User
) -> None:
    assert sandbox_server.wait_replicated()
    sandbox_server.hold(f"{plan.source_repository}/data/*")
    region = {one.name: one for one in sandbox_server.layout.regions}[plan.source_region]
    http = Http(region.lakefs_url)
    http.upload(plan.source_repository, "main", "b", b"22")
    http.commit(plan.source_repository, "main", "second", {})
    assert sandbox_server.wait_replicated()
    [check] = [one for one in preflight(actor=owner, plan=plan).checks if one.id == "existing-objects"]
    assert check.state is CheckOutcome.WARNING and ", 1 (2 bytes) are not in" in check.message
    store = clients.quick_objects(plan.source_region)
    place = f"s3://{region.bucket}/{plan.source_repository}"
    with mock.patch("deployment.wiring.clients.objects", clients.quick_objects):
        [line] = manifest(Route(Namespaces(place, plan.namespace), plan.source_region, plan.region), versions=True)
    bucket, key, version = line.strip().split(",")
    assert bucket == region.bucket
    assert ObjectVersion(key, 2, version) in set(store.list_versions(f"{place}/"))
    sandbox_server.release()
    assert sandbox_server.wait_replicated()
    [check] = [one for one in preflight(actor=owner, plan=plan).checks if one.id == "existing-objects"]
    assert check.state is CheckOutcome.OK


def test_a_store_that_shows_what_only_the_source_has_is_told_of(
    sandbox_server: Sandbox, plan: Plan, owner: User
) -> None:
    def check() -> tuple[CheckOutcome, str]:
        (found,) = [one for one in preflight(actor=owner, plan=plan).checks if one.id == "destination-proxy"]
        return found.state, found.message

    assert sandbox_server.wait_replicated()
    assert check() == (CheckOutcome.UNKNOWN, mock.ANY), "nothing to try it with"
    sandbox_server.hold(f"{plan.source_repository}/data/*")
    region = {one.name: one for one in sandbox_server.layout.regions}[plan.source_region]
    http = Http(region.lakefs_url)
    http.upload(plan.source_repository, "main", "b", b"2")
    http.commit(plan.source_repository, "main", "second", {})
    assert sandbox_server.wait_replicated()
    assert check()[0] is CheckOutcome.OK
    sandbox_server.server_faults(plan.region, "s3", "proxy")
    try:
        state, message = check()
    finally:
        sandbox_server.heal()
    assert state is CheckOutcome.WARNING and "only the source has" in message
