"""Buckets of one name in two stores: what is at one endpoint is nothing to what is at the other."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from core.errors import Conflict, Invalid
from core.installations.places import Place, store_at
from deployment import config
from deployment.wiring import region_settings
from exports.engine import marked_places
from exports.engine.abandoned_destinations import forget
from exports.models import Export, MarkedPlace
from exports.services import destinations
from exports.services.exports import export_verify
from exports.status.export import proof_of
from installations.claimed_places import claimed_places
from mirrors.models import Mirror, Repository
from mirrors.services import placement
from mirrors.services.mirrors import mirror_create
from rbac.models import User
from tests.exports.soak import Soak
from tests.exports.test_pages import an_export
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db

US, EU, AP = "us-east-1", "eu-west-1", "ap-southeast-2"


@pytest.fixture
def apart(lm: Deployment) -> Iterator[Deployment]:
    """Each region has a store of its own, as the configuration says."""
    with mock.patch("deployment.wiring.region_settings.store_at", store_at):
        stores = {region_settings.place(region, "s3://b").store for region in (US, EU, AP)}
        assert len(stores) == 3
        yield lm


def source_at(namespace: str, region: str = US, name: str = "orders") -> Repository:
    return Repository.objects.create(
        region=region, name=name, storage_namespace=namespace, creation_date=1, default_branch="main"
    )


def a_mirror_at(namespace: str, region: str, name: str = "orders-eu") -> Mirror:
    source = Repository.objects.filter(name="orders").first() or source_at("s3://elsewhere/orders")
    return Mirror.objects.create(name=name, source=source, region=region, storage_namespace=namespace)


def make(owner: User, namespace: str) -> Mirror:
    return mirror_create(actor=owner, source_repository="lake", name="lake-new", region=EU, storage_namespace=namespace)


def test_a_mirror_may_lie_as_its_source_does_where_the_buckets_of_two_stores_have_one_name(
    apart: Deployment, owner: User
) -> None:
    Mirror.objects.all().delete()
    assert make(owner, "s3://src/lake").storage_namespace == "s3://src/lake"


def test_where_the_regions_have_one_store_it_may_not(lm: Deployment, owner: User) -> None:
    Mirror.objects.all().delete()
    with pytest.raises(Invalid, match="overlaps the source's"):
        make(owner, "s3://src/lake")


def test_mirrors_of_two_regions_are_apart_in_two_stores_and_not_in_one(lm: Deployment) -> None:
    a_mirror_at("s3://shared/x", AP)
    with pytest.raises(Conflict, match="overlaps that of the mirror 'orders-eu'"):
        placement.check_still_free("s3://shared/x/in", EU, "lake-new")
    with mock.patch("deployment.wiring.region_settings.store_at", store_at):
        placement.check_still_free("s3://shared/x/in", EU, "lake-new")
        with pytest.raises(Conflict, match="overlaps"):
            placement.check_still_free("s3://shared/x/in", AP, "lake-new")


def test_an_export_and_a_mirror_at_two_endpoints_do_not_meet(apart: Deployment) -> None:
    export = an_export(repository="lake")
    Export.objects.filter(pk=export.pk).update(region=US, path="s3://out/latest")
    placement.check_still_free("s3://out/latest", EU, "lake-new")
    placement.check_source_apart("s3://out/latest", EU)
    with pytest.raises(Conflict, match="overlaps s3://out/latest, where"):
        placement.check_still_free("s3://out/latest", US, "lake-new")
    with pytest.raises(Conflict, match="overlaps s3://out/latest, where"):
        placement.check_source_apart("s3://out", US)


def test_an_export_is_refused_by_what_lies_in_the_store_that_it_goes_to(
    apart: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mirror.objects.all().delete()
    a_mirror_at("s3://shared/x", EU)
    source = apart.lake.repository.info

    def check(region: str) -> None:
        itself = Export(region=region, repository="lake", branch="main")
        destinations.check_apart(owner, "s3://shared/x", "", source, itself)

    check(US)
    with pytest.raises(Invalid, match="where the mirror 'orders-eu' lies"):
        check(EU)
    settings = config.current()
    stores = {"shared": settings.installation(EU).store}
    monkeypatch.setattr(type(settings), "export_stores", stores)
    with pytest.raises(Invalid, match="where the mirror 'orders-eu' lies"):
        check(US)


def test_two_exports_share_names_of_status_files_only_in_one_store(apart: Deployment, owner: User) -> None:
    export = an_export(repository="lake")
    Export.objects.filter(pk=export.pk).update(region=EU, branch="main", status_path="s3://states/s")
    source = apart.lake.repository.info
    main, other = (Export(region=US, repository="lake", branch=branch) for branch in ("main", "x-y"))
    destinations.check_apart(owner, "s3://out/new", "s3://states/s", source, main)
    Export.objects.filter(pk=export.pk).update(region=US, repository="lake-x", branch="y")
    with pytest.raises(Invalid, match="same names"):
        destinations.check_apart(owner, "s3://out/new", "s3://states/s", source, other)


def test_what_was_left_at_a_place_is_forgotten_only_in_its_store(apart: Deployment) -> None:
    export = an_export(repository="lake")
    left = {"s3://out/old": ["c"]}
    Export.objects.filter(pk=export.pk).update(region=US, left=left, path_at_success="s3://out/now")
    forget(region_settings.place(EU, "s3://out"))
    export.refresh_from_db()
    assert (export.left, export.path_at_success) == (left, "s3://out/now")
    forget(region_settings.place(US, "s3://out"))
    export.refresh_from_db()
    assert (export.left, export.path_at_success) == ({}, "")


def test_markers_of_a_place_are_nothing_to_the_same_address_elsewhere() -> None:
    here, there = Place("s3://out/x", "a"), Place("s3://out/x", "b")
    assert marked_places.note(here, ["d/"]) == []
    assert marked_places.note(there, ["e/"]) == []
    assert marked_places.note(here, ["f/"]) == ["d/"]
    inner = Place("s3://out/x/d/y", "b")
    assert marked_places.above(Place("s3://out/x/d/y", "a")) == {"s3://out/x": [b"d/"]}
    assert marked_places.above(inner) == {"s3://out/x": []}
    assert MarkedPlace.objects.filter(place="s3://out/x").count() == 2


def test_markers_that_an_earlier_version_wrote_down_count_in_each_store() -> None:
    MarkedPlace.objects.create(place="s3://out/x", expressions=["d/"])
    assert marked_places.note(Place("s3://out/x", "a"), ["e/"]) == ["d/"]
    assert marked_places.note(Place("s3://out/x", "b"), ["e/"]) == ["d/"]
    assert marked_places.above(Place("s3://out/x/d/y", "c")) == {"s3://out/x": [b"d/"]}


def test_a_region_that_is_not_configured_any_more_may_lie_anywhere(apart: Deployment) -> None:
    a_mirror_at("s3://shared/x", "mars")
    with pytest.raises(Conflict, match="overlaps that of the mirror"):
        placement.check_still_free("s3://shared/x", EU, "lake-new")


def test_every_claimed_place_says_its_store(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    life.set()
    place, _ = next(claimed_places())
    assert (place.uri, place.store) == ("s3://out/latest", region_settings.place(US, "s3://out").store)


def test_nothing_is_written_once_a_store_is_another_one_in_which_the_place_is_somebody_elses(life: Soak) -> None:
    with mock.patch("deployment.wiring.region_settings.store_at", store_at):
        Mirror.objects.all().delete()
        a_mirror_at("s3://out/latest", EU)
        life.lake.commit(files={"a": b"1"})
        life.set()
        life.rounds()
        assert "latest/a" in life.s3.buckets["out"]
    life.lake.commit(files={"b": b"2"})
    life.rounds()
    export = Export.objects.get()
    assert "latest/b" not in life.s3.buckets["out"]
    assert "the namespace of a mirror, overlap in the store configured now" in export.look_error


def test_markers_go_first_also_where_the_same_store_has_another_address_by_now(life: Soak) -> None:
    life.lake.commit(files={"d/a": b"1"})
    life.set(patterns=["d/"])
    life.rounds()
    assert "latest/d/_lakefs_success" in life.s3.buckets["out"]
    life.lake.commit(files={"d/a": b"2"})
    life.set(patterns=["e/"])
    with mock.patch("deployment.wiring.region_settings.store_at", lambda endpoint: "the.same.store"):
        life.rounds()
    assert life.s3.buckets["out"]["latest/d/a"] == b"2"
    assert "latest/d/_lakefs_success" not in life.s3.buckets["out"]


def in_another_store(life: Soak) -> mock._patch[str]:
    """From now on the bucket is in another store, which has one of that name and nothing of ours in it."""
    out = life.s3.buckets["out"]
    for key in [key for key in out if key not in life.watcher.foreign]:
        del out[key]
    return mock.patch("deployment.wiring.region_settings.store_at", lambda endpoint: "another.store")


def test_what_was_brought_to_one_store_is_not_taken_to_be_in_another_one(life: Soak) -> None:
    life.lake.commit(files={"a": b"1", "b": b"2"})
    life.set()
    life.rounds()
    with in_another_store(life):
        life.rounds()
        assert {"latest/a", "latest/b"} <= set(life.s3.buckets["out"])
        life.lake.commit(files={"b": b"3"})
        life.rounds()
    run = Export.objects.get().runs.latest("pk")
    assert (run.outcome, run.base != "", run.copied) == ("exported-successfully", True, 1)


def test_a_verification_proves_nothing_of_a_store_that_it_did_not_look_at(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    export = life.set(continuous=False)
    life.rounds()
    before = export_verify(actor=life.owner, export=export)
    life.rounds()
    assert proof_of(export) == before
    asked = export_verify(actor=life.owner, export=export)
    with in_another_store(life):
        life.rounds()
    assert proof_of(export) is None
    asked.refresh_from_db()
    assert (asked.outcome, asked.error) == ("outdated", "s3://out/latest is now in another store")


def test_a_run_does_not_end_well_in_another_store_than_it_began_in(life: Soak) -> None:
    life.lake.commit(files={name: name.encode() for name in "abc"})
    life.set()
    life.work()
    life.late_in = 9
    life.work()
    export = Export.objects.get()
    assert export.runs.open().get().copied
    with in_another_store(life):
        life.rounds()
        export.refresh_from_db()
        assert "from aws to another.store" in export.error
        life.repair()
        life.rounds()
        assert Export.objects.get().state == "exported-successfully"
    assert {f"latest/{name}" for name in "abc"} <= set(life.s3.buckets["out"])


def moved_under_a_run(life: Soak, namespace: str) -> Export:
    """A run was begun while each region had a store of its own; now they share one, in which a mirror lies there."""
    with mock.patch("deployment.wiring.region_settings.store_at", store_at):
        Mirror.objects.all().delete()
        a_mirror_at(namespace, EU)
        life.lake.commit(files={name: name.encode() for name in "abc"})
        life.set()
        life.work()
        life.late_in = 3
        life.work()
    export = Export.objects.get()
    assert export.runs.open().get().cut
    life.log.clear()
    return export


def test_a_run_writes_nothing_more_at_its_place_though_another_one_is_configured_by_now(life: Soak) -> None:
    export = moved_under_a_run(life, "s3://out/latest")
    life.set("s3://out/other")
    life.work()
    export.refresh_from_db()
    assert life.log == []
    assert "the namespace of a mirror, overlap in the store configured now" in export.error
    life.repair()
    life.rounds()
    assert {key.partition("/")[0] for _, key in life.log} == {"other", "states"}
    assert life.s3.buckets["out"]["other/a"] == b"a"


def test_no_states_are_written_where_a_mirror_lies_by_now(life: Soak) -> None:
    export = moved_under_a_run(life, "s3://out/states")
    life.rounds()
    export.refresh_from_db()
    assert life.log == [] and "s3://out/states, the namespace of a mirror" in export.error
    life.set(status_path="s3://out/told")
    life.repair()
    life.rounds()
    assert {key.partition("/")[0] for _, key in life.log} == {"latest", "told"}


def test_files_are_not_brought_among_the_states_of_another_export(life: Soak) -> None:
    with mock.patch("deployment.wiring.region_settings.store_at", store_at):
        other = an_export(repository="lake")
        Export.objects.filter(pk=other.pk).update(region=EU, path="s3://o/x", status_path="s3://out/latest/states")
        life.lake.commit(files={"a": b"1"})
        life.set()
    life.log.clear()
    life.rounds()
    assert life.log == []


def test_an_export_that_ends_tells_nothing_where_a_mirror_lies_by_now(life: Soak) -> None:
    export = moved_under_a_run(life, "s3://out/states")
    Export.objects.update(deleting=True)
    life.rounds()
    assert life.log == [] and not Export.objects.filter(pk=export.pk).exists()
