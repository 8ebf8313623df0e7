"""Of those who want the same place at the same moment one gets it: mirrors, source repositories and exports alike."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest import mock

import pytest
from django.db import connection, transaction

from core.errors import Conflict, Invalid, LakeMirrorError, Unreachable
from core.installations.places import store_at
from db import clock
from deployment import config
from exports.models import Export
from jobs.models import Duty
from mirrors.models import Mirror, PlaceLock, Repository
from mirrors.services.mirrors import mirror_create
from mirrors.services.placement import hold_places
from mirrors.services.rebuild import Result, rebuild
from tests.exports.soak import Soak
from tests.fakes import Lake
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db
LAST_LOOK = {
    "export": "exports.services.exports.destinations.check_reached",
    "mirror": "mirrors.services.mirrors.placement.check_unused",
}


def an_export(life: Soak, path: str, branch: str = "main") -> Export:
    life.lake.repository.branches.setdefault(branch, life.lake.repository.branches["main"])
    return life.set(path, branch=branch)


def a_mirror(life: Soak, namespace: str, name: str = "lake-eu") -> Mirror:
    return mirror_create(
        actor=life.owner, source_repository="lake", name=name, region="eu-west-1", storage_namespace=namespace
    )


@contextmanager
def after_the_first_look(kind: str, do: Callable[[], object]) -> Iterator[None]:
    """Somebody else is through with all of it between another one's questions and the transaction that stores it."""
    done: list[object] = []

    def look(*args: object) -> None:
        if not done:
            done.append(1)
            done.append(do())

    with mock.patch(LAST_LOOK[kind], look):
        yield
    assert len(done) == 2


def places() -> set[str]:
    mirrors = Mirror.objects.values_list("storage_namespace", flat=True)
    return {*mirrors, *Export.objects.values_list("path", flat=True)}


def test_of_two_exports_to_one_place_one_is_stored(life: Soak) -> None:
    with (
        after_the_first_look("export", lambda: an_export(life, "s3://out/latest/in", "dev")),
        pytest.raises(Invalid, match=r"where lake/dev .* is exported to, overlap") as refused,
    ):
        an_export(life, "s3://out/latest")
    assert (refused.value.field, places()) == ("exportPath", {"s3://out/latest/in"})


def test_of_two_mirrors_nested_in_each_other_one_is_stored(life: Soak) -> None:
    with (
        after_the_first_look("mirror", lambda: a_mirror(life, "s3://dst/lake/nested", "lake-b")),
        pytest.raises(Conflict, match="overlaps that of the mirror 'lake-b'"),
    ):
        a_mirror(life, "s3://dst/lake", "lake-a")
    assert places() == {"s3://dst/lake/nested"}
    assert Repository.objects.count() == 1


@pytest.mark.parametrize("where", ["s3://out/latest/x", "s3://out/latest", "s3://out", "s3://out/states/y"])
def test_a_mirror_is_not_made_where_an_export_writes(life: Soak, where: str) -> None:
    an_export(life, "s3://out/latest")
    with pytest.raises(Conflict, match=r"overlaps s3://out/.*, where .*lake/main") as refused:
        a_mirror(life, where)
    assert (refused.value.field, Mirror.objects.count()) == ("storage_namespace", 0)


@pytest.mark.parametrize("where", ["s3://out/latest/x", "s3://out"])
def test_of_a_mirror_and_an_export_at_once_one_is_stored(life: Soak, where: str) -> None:
    with (
        after_the_first_look("mirror", lambda: an_export(life, "s3://out/latest")),
        pytest.raises(Conflict, match="is exported to"),
    ):
        a_mirror(life, where)
    with (
        after_the_first_look("export", lambda: a_mirror(life, "s3://out/free")),
        pytest.raises(Invalid, match="where the mirror 'lake-eu' lies, overlap"),
    ):
        an_export(life, "s3://out/free/in", "dev")
    assert places() == {"s3://out/latest", "s3://out/free"}


def test_an_export_does_not_go_where_a_source_came_to_be_meanwhile(life: Soak) -> None:
    pins = {"creation_date": 1, "default_branch": "main"}
    made = lambda: Repository.objects.create(  # noqa: E731
        region="eu-west-1", name="other", storage_namespace="s3://out/latest/other", **pins
    )
    with after_the_first_look("export", made), pytest.raises(Invalid, match="the storage namespace of 'other'"):
        an_export(life, "s3://out/latest")


@pytest.mark.parametrize("where", ["s3://out/other/in", "s3://out/other/in/x", "s3://out/other"])
def test_an_export_does_not_go_where_a_repository_lies_that_nobody_mirrors(life: Soak, where: str) -> None:
    life.lm.us.add_repository("other", "s3://out/other/in")
    with pytest.raises(Invalid, match="the repository 'other' in us-east-1, overlap") as refused:
        an_export(life, where)
    assert (refused.value.field, Export.objects.count()) == ("exportPath", 0)


def test_a_repository_of_another_region_counts_where_the_bucket_lies_in_its_store(life: Soak) -> None:
    life.lm.eu.add_repository("other", "s3://out/other")
    theirs = config.current().store("eu-west-1")
    with mock.patch("deployment.wiring.region_settings.store_at", store_at):
        with (
            mock.patch.object(config.Config, "export_store", lambda self, region, bucket: (bucket, theirs)),
            pytest.raises(Invalid, match="the repository 'other' in eu-west-1, overlap"),
        ):
            an_export(life, "s3://out/other")
        an_export(life, "s3://out/other")


def test_no_place_is_given_away_while_nobody_tells_whose_it_is(life: Soak) -> None:
    refused = mock.patch.object(life.lm.us, "list_repositories", side_effect=Unreachable("no answer"))
    with refused, pytest.raises(Unreachable, match="the lakeFS of us-east-1 can't be asked: no answer"):
        an_export(life, "s3://out/latest")
    assert not Export.objects.exists()


def test_a_source_that_lies_where_an_export_writes_is_not_mirrored(life: Soak) -> None:
    an_export(life, "s3://out/latest")
    Lake(life.lm.us, life.s3, name="other", namespace="s3://out/latest/other")  # type: ignore[arg-type]
    with pytest.raises(Conflict, match="overlaps s3://out/latest, where lake/main") as refused:
        mirror_create(
            actor=life.owner,
            source_repository="other",
            name="other-eu",
            region="eu-west-1",
            storage_namespace="s3://dst/other",
        )
    assert (refused.value.field, Mirror.objects.count()) == ("source_repository", 0)


def test_a_mirror_is_not_made_among_the_objects_of_another_source(life: Soak) -> None:
    Repository.objects.create(
        region="us-east-1", name="other", storage_namespace="s3://dst", creation_date=1, default_branch="main"
    )
    with pytest.raises(Conflict, match="overlaps that of 'other' in us-east-1"):
        a_mirror(life, "s3://dst/lake")


def test_a_place_that_was_left_is_given_to_nobody_while_a_write_may_still_arrive(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    mine = an_export(life, "s3://out/latest")
    life.rounds()
    an_export(life, "s3://out/other")
    Export.objects.filter(pk=mine.pk).update(writes_until=clock.now() + timedelta(seconds=60))
    with pytest.raises(Invalid, match="may still arrive"):
        an_export(life, "s3://out/latest", "dev")
    with pytest.raises(Conflict, match="may still arrive"):
        a_mirror(life, "s3://out/latest")
    Export.objects.filter(pk=mine.pk).update(writes_until=clock.now() - timedelta(seconds=1))
    an_export(life, "s3://out/latest", "dev")


def test_a_status_path_that_was_left_is_nobody_elses_while_a_run_goes_on(life: Soak) -> None:
    life.lake.commit(files={"a": b"1"})
    an_export(life, "s3://out/latest")
    life.rounds(1)
    life.set(status_path="s3://out/told")
    with pytest.raises(Invalid, match=r"s3://out/states, where a run of .* still writes"):
        an_export(life, "s3://out/states/dev", "dev")
    with pytest.raises(Conflict, match="still writes"):
        a_mirror(life, "s3://out/states")
    life.rounds()
    a_mirror(life, "s3://out/states")


def test_that_it_is_repaired_is_told_at_the_status_path_of_now(life: Soak) -> None:
    """The one before may be somebody else's by then."""
    life.lake.commit(files={"a": b"1"})
    an_export(life, "s3://out/latest")
    life.denied = "latest/"
    life.rounds()
    life.denied = ""
    life.set(status_path="s3://out/told")
    a_mirror(life, "s3://out/states")
    life.log.clear()
    life.repair()
    life.rounds()
    assert Export.objects.get(branch="main").state == "exported-successfully"
    assert not [key for _, key in life.log if key.startswith("states/")]
    assert [key for _, key in life.log if key.startswith("told/lake-main-")]


def test_a_mirror_that_is_made_again_finds_its_place_taken_by_an_export(lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.add_mirror()
    lm.work()
    Duty.objects.all().delete()
    Mirror.objects.all().delete()
    Repository.objects.all().delete()
    Export.objects.create(
        region="us-east-1",
        repository="elsewhere",
        branch="main",
        creation_date=1,
        storage_namespace="s3://else/where",
        path=f"{NAMESPACE}/exported",
        created_at=clock.now(),
        changed_at=clock.now(),
    )
    (line,) = [one for one in rebuild(actor="ada", regions=["eu-west-1"]) if one.name == "lake-eu"]
    assert (line.result, "where elsewhere/main" in line.detail) == (Result.LEFT, True)
    assert not Mirror.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_whoever_wants_a_place_waits_for_whoever_has_begun_to_take_one() -> None:
    """Also for the first one ever, when there is no row yet."""
    PlaceLock.objects.all().delete()
    order: list[str] = []
    holding, tried = threading.Event(), threading.Event()

    def second() -> None:
        try:
            holding.wait(5)
            tried.set()
            with transaction.atomic():
                hold_places()
                order.append("second")
        finally:
            connection.close()

    other = threading.Thread(target=second)
    other.start()
    with transaction.atomic():
        hold_places()
        holding.set()
        tried.wait(5)
        other.join(0.3)
        order.append("first")
    other.join(20)
    assert order == ["first", "second"]
    assert PlaceLock.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_who_want_overlapping_places_at_once_one_gets_it() -> None:
    """The rules and the lock alone, from threads: nothing that would be asked over the network."""
    from mirrors.services.placement import check_still_free

    source = Repository.objects.create(
        region="us-east-1", name="lake", storage_namespace="s3://src/lake", creation_date=1, default_branch="main"
    )
    start, refused = threading.Barrier(4), []

    def take(number: int) -> None:
        try:
            start.wait(5)
            with transaction.atomic():
                hold_places()
                name, namespace = f"lake-{number}", "s3://dst/lake" + "/x" * number
                check_still_free(namespace, "eu-west-1", name)
                Mirror.objects.create(name=name, source=source, region="eu-west-1", storage_namespace=namespace)
        except LakeMirrorError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert (Mirror.objects.count(), len(refused)) == (1, 3)
