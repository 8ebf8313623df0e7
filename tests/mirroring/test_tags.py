"""Mirrors that follow tags: scenario 30 of docs/promotion.md, on stand-ins."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from unittest import mock

import pytest
from django.core.management import call_command
from django.db.models import F
from django.test import Client

from core.errors import Denied, RemoteFailure, Unreachable
from core.mirroring.promotion import MOVED_BY_OTHERS
from db import clock
from jobs.models import Duty
from mirrors.models import (
    Blocker,
    Commit,
    Mirror,
    MirrorCommit,
    MirrorTag,
    MoveIntent,
    Promotion,
    Repository,
    SourceBranch,
    SourceTag,
    UnplacedCommit,
)
from mirrors.queries.certificates import parse_descriptor
from mirrors.services.settings import mirror_update
from mirrors.status.mirror import mirror_status
from mirrors.status.tags import tag_readings
from rbac.models import User
from tests.api import Api
from tests.mirroring.test_found_by_breaking import age, branches, change, lose
from tests.mirroring.test_recreated_source import failing
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.services.test_rebuild import lose_database, rebuild
from tests.mirrors.transitions.test_selection import MIRROR, commit_only, mirrored, whole_histories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def a(lm: Deployment) -> str:
    """A commit that was promoted, at a mirror that follows tags."""
    Mirror.objects.update(tags=True)
    return mirrored(lm, a=b"1")


def source_tags(lm: Deployment) -> dict[str, str]:
    return lm.lake.repository.tags


def tags(lm: Deployment) -> dict[str, str]:
    """What the mirror's lakeFS says."""
    return lm.eu.repositories["lake-eu"].tags


def history(tag: str) -> list[tuple[str, str, str]]:
    moves = Promotion.objects.filter(branch=tag, is_tag=True).order_by("pk")
    return list(moves.values_list("why", "from_commit", "to_commit"))


def states() -> dict[str, str]:
    return {tag.name: tag.status for tag in tag_readings(Mirror.objects.get(), amount=100)}


def lone_commit(lm: Deployment, path: str, parent: str) -> str:
    """A commit on no branch."""
    branches = lm.lake.repository.branches
    branches["lone"] = parent
    made = lm.lake.commit("lone", {path: b"1"})
    del branches["lone"]
    return made


def forget_tag(lm: Deployment, name: str) -> None:
    """Delete a tag of the source, and let both looks go by."""
    del source_tags(lm)[name]
    lm.work(1)
    SourceTag.objects.filter(name=name).update(missing_since=datetime.now(UTC) - timedelta(seconds=61))
    lm.work(2)


def test_tags_are_left_alone_unless_they_are_asked_for(lm: Deployment) -> None:
    source_tags(lm)["v1"] = mirrored(lm, a=b"1")
    lm.work(2)
    assert tags(lm) == {}
    assert "list_tags" not in [*lm.us.calls, *lm.eu.calls]


def test_30_a_tag_follows_once_its_commit_is_complete(lm: Deployment, a: str) -> None:
    b = lm.lake.commit(files={"b": b"1"})
    source_tags(lm).update(v1=a, v2=b)
    held = lm.lake.address_of(b, "b")
    lm.arrive(held)
    lm.work(2)
    assert tags(lm) == {"v1": a}
    assert states() == {"v1": "Up to date", "v2": "Waiting for its commit"}
    lm.arrive()
    lm.work(2)
    assert tags(lm) == {"v1": a, "v2": b}
    assert history("v2") == [("first-promotion", "", b)]
    assert not Promotion.objects.filter(branch="v1", is_tag=False).exists()


def test_30_a_tag_that_moved_at_the_source_is_deleted_and_made_anew(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    b = lm.lake.commit(files={"b": b"1"})
    source_tags(lm)["v1"] = b
    lm.arrive(lm.lake.address_of(b, "b"))
    lm.work(2)
    assert tags(lm) == {"v1": a}
    lm.arrive()
    lm.work(2)
    assert tags(lm) == {"v1": b}
    assert history("v1")[-1] == ("source-moved", a, b)


def test_30_a_tag_is_deleted_after_two_looks_without_it(lm: Deployment, a: str) -> None:
    source_tags(lm).update(v1=a, v2=a)
    lm.work(2)
    del source_tags(lm)["v1"]
    lm.work(2)
    assert tags(lm) == {"v1": a, "v2": a}
    SourceTag.objects.filter(name="v1").update(missing_since=datetime.now(UTC) - timedelta(seconds=61))
    lm.work(2)
    assert tags(lm) == {"v2": a}
    assert history("v1")[-1] == ("deleted-at-source", a, "")
    source_tags(lm)["v1"] = a
    lm.work(2)
    assert tags(lm) == {"v1": a, "v2": a}


def test_30_a_commit_that_only_a_tag_names_is_copied_and_checked_as_others(lm: Deployment, a: str) -> None:
    t = lone_commit(lm, "t", a)
    u = lone_commit(lm, "u", t)
    source_tags(lm)["v1"] = u
    held = lm.lake.address_of(t, "t")
    lm.arrive(held)
    lm.work(2)
    assert tags(lm) == {}
    assert [blocker.address for blocker in Blocker.objects.all()][:1] == [held]
    lm.arrive()
    lm.work(2)
    assert tags(lm) == {"v1": u}
    assert {t, u} <= lm.eu.repositories["lake-eu"].commits.keys()


def test_a_mirror_beside_it_does_not_get_the_commits_of_tags(lm: Deployment, a: str) -> None:
    other = Mirror.objects.create(
        name="plain",
        source=Repository.objects.get(),
        region="eu-west-1",
        storage_namespace="s3://dst/plain",
        state="active",
        follows_all=True,
    )
    t = lone_commit(lm, "t", a)
    source_tags(lm)["v1"] = t
    lm.arrive()
    sense = Duty.objects.get(kind="sense").pk
    lm.run(sense)
    assert list(MirrorCommit.objects.filter(commit__sha=t).values_list("mirror__name", flat=True)) == ["lake-eu"]
    lm.lake.repository.branches["dev"] = t
    u = lm.lake.commit("dev", {"u": b"1"})
    lm.run(sense)
    assert set(other.commits.values_list("commit__sha", flat=True)) >= {t, u}
    whole_histories(lm)


def test_30_what_others_made_is_neither_moved_nor_deleted(lm: Deployment, a: str) -> None:
    root = lm.lake.repository.commits[a].parents[0]
    tags(lm).update(v1=root, theirs=a)
    source_tags(lm).update(v1=a, v2=a)
    lm.work(2)
    assert tags(lm) == {"v1": root, "theirs": a, "v2": a}
    assert states() == {"theirs": "Not made by this mirror", "v1": "Not made by this mirror", "v2": "Up to date"}
    assert [why for why, _, _ in history("v1")] == ["moved-by-somebody"]
    forget_tag(lm, "v1")
    assert tags(lm)["v1"] == root


def test_a_tag_of_ours_that_somebody_moved_or_deleted_is_put_back(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    tags(lm)["v1"] = lm.lake.repository.commits[a].parents[0]
    lm.work(2)
    assert tags(lm) == {"v1": a}
    assert [why for why, _, _ in history("v1")[1:]] == ["moved-by-somebody", "put-back"]
    del tags(lm)["v1"]
    lm.work(2)
    assert tags(lm) == {"v1": a}
    assert [why for why, _, _ in history("v1")[3:]] == ["put-back"], "our own call may have deleted it so late"
    MoveIntent.objects.update(at=F("at") - timedelta(days=2))
    lm.work(1)
    del tags(lm)["v1"]
    lm.work(2)
    assert tags(lm) == {"v1": a}
    assert [why for why, _, _ in history("v1")[4:]] == ["gone-at-the-mirror", "put-back"]


@pytest.mark.parametrize("days", [0, 2])
def test_192_a_tag_that_comes_back_with_a_backup_is_deleted_again_and_blames_nobody(
    lm: Deployment, a: str, days: int
) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    backup = deepcopy(lm.eu.repositories["lake-eu"])
    forget_tag(lm, "v1")
    assert tags(lm) == {}
    MoveIntent.objects.update(at=F("at") - timedelta(days=days))
    lm.eu.repositories["lake-eu"] = backup
    lm.work(2)
    assert tags(lm) == {}
    assert [why for why, _, _ in history("v1")[1:]] == ["deleted-at-source", "back-where-it-was", "deleted-at-source"]


@pytest.mark.parametrize("days", [0, 2])
def test_192_a_tag_that_is_back_at_its_former_commit_is_moved_again(lm: Deployment, a: str, days: int) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    backup = deepcopy(lm.eu.repositories["lake-eu"])
    source_tags(lm)["v1"] = b = mirrored(lm, b=b"1")
    lm.work(2)
    assert tags(lm) == {"v1": b}
    MoveIntent.objects.update(at=F("at") - timedelta(days=days))
    lm.work(1)
    lm.eu.repositories["lake-eu"] = backup
    lm.work(3)
    assert tags(lm) == {"v1": b}
    assert "moved-by-somebody" not in {why for why, _, _ in history("v1")}


def test_192_while_it_can_not_be_deleted_it_is_nobodys_else(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    backup = deepcopy(lm.eu.repositories["lake-eu"])
    forget_tag(lm, "v1")
    lm.eu.repositories["lake-eu"] = backup
    with mock.patch.object(lm.eu, "delete_tag", side_effect=Denied("no")):
        lm.work(2)
    assert [why for why, _, _ in history("v1")[2:]] == ["back-where-it-was"]
    assert not MirrorTag.objects.filter(stray=True).exists()
    lm.work(2)
    assert tags(lm) == {}


def test_192_where_somebody_made_it_since_it_is_somebodys(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    forget_tag(lm, "v1")
    tags(lm)["v1"] = root = lm.lake.repository.commits[a].parents[0]
    lm.work(2)
    tags(lm)["v1"] = a
    lm.work(2)
    assert tags(lm) == {"v1": a}
    assert [to for why, _, to in history("v1") if why == "moved-by-somebody"] == [root, a]


def test_208_a_tag_that_somebody_made_deleted_and_made_where_ours_had_been_is_theirs(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    forget_tag(lm, "v1")
    tags(lm)["v1"] = lm.lake.repository.commits[a].parents[0]
    lm.work(2)
    del tags(lm)["v1"]
    lm.work(2)
    tags(lm)["v1"] = a
    lm.work(2)
    assert tags(lm) == {"v1": a}
    assert MirrorTag.objects.get(name="v1").stray


def test_209_a_tag_that_comes_back_while_the_sources_can_not_be_read_goes_there_once_it_can(
    lm: Deployment, a: str
) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    backup = deepcopy(lm.eu.repositories["lake-eu"])
    forget_tag(lm, "v1")
    source_tags(lm)["v1"] = new = lone_commit(lm, "x", a)
    lm.arrive()
    with failing(lm, lambda commit: commit == new):
        lm.work(2)
        lm.eu.repositories["lake-eu"] = backup
        lm.work(2)
        assert (tags(lm), states()) == ({"v1": a}, {"v1": "Unreadable at source"})
    lm.work(3)
    assert (tags(lm), states()) == ({"v1": new}, {"v1": "Up to date"})
    assert "moved-by-somebody" not in {why for why, _, _ in history("v1")}


@pytest.mark.parametrize("again", [True, False])
def test_209_a_tag_that_comes_back_after_tags_were_not_followed_for_a_while_is_put_in_order(
    lm: Deployment, a: str, again: bool
) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    backup = deepcopy(lm.eu.repositories["lake-eu"])
    forget_tag(lm, "v1")
    source_tags(lm)["v2"] = a
    for follows in (False, True):
        change(tags=follows)
        lm.work(2)
    lm.eu.repositories["lake-eu"] = backup
    lm.work(2)
    source_tags(lm).update({"v1": mirrored(lm, b=b"1")} if again else {})
    SourceTag.objects.exclude(missing_since=None).update(missing_since=F("missing_since") - timedelta(minutes=2))
    lm.work(3)
    assert tags(lm) == source_tags(lm)
    assert "moved-by-somebody" not in {why for why, _, _ in history("v1")}


@pytest.mark.parametrize("call", ["create_tag", "delete_tag"])
def test_a_call_whose_answer_is_lost_is_not_made_twice_and_blames_nobody(lm: Deployment, a: str, call: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    b = mirrored(lm, b=b"1")
    source_tags(lm)["v1"] = b
    lm.eu.after[call] = RemoteFailure("500")
    lm.work(2)
    assert tags(lm) == {"v1": b}
    assert not {*MOVED_BY_OTHERS} & {why for why, _, _ in history("v1")}


def work_without_a_note(lm: Deployment) -> None:
    """A worker ends between its call for a tag and its note of it."""
    with mock.patch("mirroring.promote.tags._record", side_effect=RuntimeError("killed")):
        lm.work(1)


def test_a_tag_that_was_made_before_a_crash_follows_the_source_all_the_same(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    work_without_a_note(lm)
    assert (tags(lm), history("v1")) == ({"v1": a}, [])
    b = source_tags(lm)["v1"] = commit_only(lm, b=b"1")
    lm.work(2)
    assert tags(lm) == {"v1": b}
    assert history("v1") == [("first-promotion", "", a), ("source-moved", a, b)]
    assert states() == {"v1": "Up to date"}


def test_a_tag_that_was_made_before_a_crash_is_deleted_with_the_sources(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    work_without_a_note(lm)
    del source_tags(lm)["v1"]
    work_without_a_note(lm)
    assert (tags(lm), history("v1")) == ({"v1": a}, [])
    SourceTag.objects.filter(name="v1").update(missing_since=datetime.now(UTC) - timedelta(seconds=61))
    lm.work(2)
    assert tags(lm) == {}
    assert history("v1") == [("first-promotion", "", a), ("deleted-at-source", a, "")]


def meanwhile(lm: Deployment, call: Callable[[], None]) -> AbstractContextManager[Any]:
    """Something happens right after a tag was deleted, before it is made anew."""
    delete = lm.eu.delete_tag

    def deleting(*given: str) -> None:
        delete(*given)
        call()

    return mock.patch.object(lm.eu, "delete_tag", deleting)


def moved_tag(lm: Deployment, a: str) -> str:
    """A tag that the mirror has at one commit, and the source at another by now, which is whole."""
    b = mirrored(lm, b=b"2")
    source_tags(lm)["v1"] = a
    lm.work(1)
    source_tags(lm)["v1"] = b
    return b


def test_95_a_tag_on_its_way_to_another_commit_arrives_there_in_a_pause(lm: Deployment, a: str) -> None:
    b = moved_tag(lm, a)
    with meanwhile(lm, lambda: change(paused=True)):
        lm.work(2)
    assert tags(lm) == {"v1": b}
    assert [why for why, _, _ in history("v1")] == ["first-promotion", "source-moved"]


def test_95_a_tag_that_is_not_there_while_it_can_not_be_made_is_not_said_to_be(lm: Deployment, a: str) -> None:
    b = moved_tag(lm, a)
    with meanwhile(lm, lambda: change(paused=True)), mock.patch.object(lm.eu, "create_tag", side_effect=Unreachable):
        lm.work(2)
    assert not tags(lm)
    told = tag_readings(Mirror.objects.get(), amount=9)[0]
    assert (told.status, told.mirror_commit) == ("Waiting for its commit", "")
    change(paused=False)
    lm.work(1)
    assert tags(lm) == {"v1": b}
    assert [why for why, _, _ in history("v1")] == ["first-promotion", "source-moved"]


def test_95_a_tag_is_made_where_it_was_if_its_new_commit_was_lost_on_the_way(lm: Deployment, a: str) -> None:
    b = moved_tag(lm, a)

    def lost() -> None:
        lose(lm, b, "b")
        age(b, lm=lm)
        lm.run(Duty.objects.get(kind="validate").pk)

    with meanwhile(lm, lost):
        lm.work(1)
    lm.work(1)
    assert tags(lm) == {"v1": a}


def test_a_tag_with_the_name_of_a_branch_waits_and_delays_nobody(lm: Deployment, a: str) -> None:
    """lakeFS lets no tag have a branch's name, but at the mirror that branch may still be on its way out."""
    lm.eu.repositories["lake-eu"].branches["v1"] = a
    source_tags(lm).update(v1=a, v2=a)
    lm.work(2)
    assert tags(lm) == {"v2": a}


def test_tags_are_read_page_by_page(lm: Deployment, a: str) -> None:
    source_tags(lm).update({f"v{n:04}": a for n in range(1500)})
    lm.run(Duty.objects.get(kind="sense").pk)
    assert SourceTag.objects.count() == 1500
    assert lm.us.calls.count("list_tags") >= 2


def test_nothing_is_taken_from_a_source_that_is_another_one_now(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    lm.lake.repository.info = replace(lm.lake.repository.info, creation_date=1)
    del source_tags(lm)["v1"]
    lm.work(2)
    assert Repository.objects.get().frozen_reason
    assert not SourceTag.objects.filter(missing_looks__gt=0).exists()
    assert tags(lm) == {"v1": a}


# --- switched on and off ----------------------------------------------------------------------------------------------


def test_tags_that_are_no_longer_followed_stay_where_they_are(lm: Deployment, a: str, owner: User) -> None:
    t = lone_commit(lm, "t", a)
    w = lone_commit(lm, "w", a)
    source_tags(lm).update(v1=t, v2=w)
    lm.arrive(lm.lake.address_of(w, "w"))
    lm.work(2)
    assert tags(lm) == {"v1": t}
    assert Blocker.objects.exists()
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"tags": False})
    lm.work(2)
    assert not Blocker.objects.exists()
    needed = set(MirrorCommit.objects.values_list("commit__sha", flat=True))
    assert (t in needed, w in needed) == (True, False)
    source_tags(lm)["v1"] = a
    lm.work(2)
    assert tags(lm) == {"v1": t}
    assert states() == {"v1": "Not mirrored"}
    del source_tags(lm)["v2"]
    mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"tags": True})
    lm.work(2)
    assert tags(lm) == {"v1": a}
    whole_histories(lm)


def test_tags_are_followed_by_patch_and_listed(lm: Deployment, owner: User) -> None:
    api = Api(owner)
    a = mirrored(lm, a=b"1")
    source_tags(lm).update(v1=a, v2=a, v3=a)
    assert api.call("GET", MIRROR)[1]["tags"] is False
    assert api.call("GET", f"{MIRROR}/tags")[1]["results"] == []
    status, shown = api.call("PATCH", MIRROR, {"tags": True})
    assert (status, shown["tags"]) == (200, True)
    assert api.call("PATCH", MIRROR, {"tags": "yes"})[0] == 400
    lm.work(2)
    status, page = api.call("GET", f"{MIRROR}/tags?amount=2")
    up_to_date = {"source_commit": a, "mirror_commit": a, "status": "Up to date"}
    assert (status, page["results"]) == (200, [{"name": "v1", **up_to_date}, {"name": "v2", **up_to_date}])
    assert page["pagination"]["next_offset"] == "v2"
    assert [tag["name"] for tag in api.call("GET", f"{MIRROR}/tags?after=v2")[1]["results"]] == ["v3"]
    moves = api.call("GET", f"{MIRROR}/promotions")[1]["results"]
    assert [(move["branch"], move["tag"]) for move in moves] == [
        (None, "v3"),
        (None, "v2"),
        (None, "v1"),
        ("main", None),
    ]
    assert api.call("GET", f"{MIRROR}/promotions?branch=v1")[1]["results"] == []


def test_tags_need_the_right_to_list(lm: Deployment, outsider: User) -> None:
    assert Api(outsider).call("GET", f"{MIRROR}/tags")[0] == 403


def test_the_page_has_a_table_of_tags(lm: Deployment, a: str, owner: User) -> None:
    client = Client()
    client.force_login(owner)
    assert "<h2>Tags" not in client.get("/mirrors/lake-eu/").content.decode()
    source_tags(lm)["v1.0"] = a
    lm.work(2)
    page = client.get("/mirrors/lake-eu/").content.decode()
    assert '<h2>Tags <span class="number">1</span></h2>' in page
    assert '<th scope="row" class="name">v1.0</th><td>Up to date</td>' in page
    assert a in page


def test_a_mirror_is_made_with_tags_by_the_form(lm: Deployment, owner: User) -> None:
    Mirror.objects.all().delete()
    client = Client()
    client.force_login(owner)
    typed = {"source_repository": "lake", "source_region": "us-east-1", "name": "lake-eu", "region": "eu-west-1"}
    client.post("/mirrors/new/", typed | {"storage_namespace": NAMESPACE, "tags": "on", "anyway": "1"})
    assert Mirror.objects.get().tags


def test_tags_are_known_again_after_the_database_was_lost(lm: Deployment, a: str) -> None:
    source_tags(lm).update(v1=a, v2=a)
    lm.work(2)
    assert parse_descriptor(lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"]).tags
    for model in (Duty, Mirror, Repository):
        model.objects.all().delete()
    call_command("rebuild", "--from-destination", stdout=StringIO())
    assert Mirror.objects.get().tags
    lm.work(2)
    b = lm.lake.commit(files={"b": b"1"})
    source_tags(lm)["v1"] = b
    lm.arrive()
    lm.work(2)
    assert tags(lm) == {"v1": b, "v2": a}
    assert [why for why, _, _ in history("v1")] == ["source-moved"]


def test_94_a_tag_that_the_source_has_elsewhere_is_taken_for_nobodys_after_a_rebuild(lm: Deployment, a: str) -> None:
    tags(lm)["v1"] = a  # somebody's own
    source_tags(lm)["v1"] = lm.lake.commit(files={"b": b"1"})
    lm.arrive()
    lm.work(2)
    assert states() == {"v1": "Not made by this mirror"}
    lose_database()
    rebuild()
    lm.work(3)
    assert tags(lm) == {"v1": a}
    assert states() == {"v1": "Not made by this mirror"}
    forget_tag(lm, "v1")
    assert tags(lm) == {"v1": a}


def test_93_a_tag_at_a_damaged_commit_is_not_called_up_to_date(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    assert states() == {"v1": "Up to date"}
    lm.lake.commit(files={"a": None, "b": b"2"})
    lm.arrive()
    lm.work(2)
    lose(lm, a, "a")
    age(a, lm=lm)
    lm.work(3)
    assert states() == {"v1": "Damaged"}


def test_93_a_tag_that_is_not_proven_yet_is_not_called_up_to_date(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    lose_database()
    rebuild()
    lm.run(Duty.objects.get(kind="sense").pk)
    assert states() == {"v1": "Not proven"}
    lm.work(2)
    assert states() == {"v1": "Up to date"}
    assert not MirrorTag.objects.get().stray


def test_tags_are_made_again_in_a_repository_that_was_made_anew(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    gone = lm.eu.repositories.pop("lake-eu")
    made = lm.eu.add_repository("lake-eu", NAMESPACE, read_only=True)
    made.info = replace(gone.info, creation_date=gone.info.creation_date + 60)
    lm.work(2)
    assert tags(lm) == {"v1": a}
    assert not {*MOVED_BY_OTHERS} & {why for why, _, _ in history("v1")}
    assert Commit.objects.count() == 2
    assert MirrorTag.objects.get().commit_id == a


# --- what can't be read at the source


def unreadable_log(lm: Deployment, commit: str) -> Any:
    """The log from one commit fails, whoever asks."""
    plain = lm.us.log_commits

    def log(repository: str, first: str, **page: Any) -> Any:
        if first == commit:
            raise RemoteFailure("500")
        return plain(repository, first, **page)

    return mock.patch.object(lm.us, "log_commits", log)


def off_branches(lm: Deployment, a: str) -> str:
    """A commit after a that no branch leads to, all of it arrived."""
    made = lm.lake.record_tree((a,), lm.lake.trees[a], "on no branch")
    lm.arrive()
    return made


@pytest.mark.parametrize("forgotten", [False, True])
def test_107_and_108_a_tag_that_moved_to_what_can_not_be_read_is_not_up_to_date(
    lm: Deployment, a: str, owner: User, forgotten: bool
) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    if forgotten:
        SourceTag.objects.all().delete()
    x = source_tags(lm)["v1"] = off_branches(lm, a)
    with unreadable_log(lm, x):
        lm.work(3)
        assert (states(), tags(lm)) == ({"v1": "Unreadable at source"}, {"v1": a})
        assert tag_readings(Mirror.objects.get(), amount=9)[0].source_commit == x
        assert f"/commits/{x}" not in page_of_tags(owner)
    lm.work(3)
    assert (states(), tags(lm)) == ({"v1": "Up to date"}, {"v1": x})
    assert [why for why, _, _ in history("v1")] == ["first-promotion", "source-moved"]


def test_107_a_new_tag_that_can_not_be_read_is_told_of(lm: Deployment, a: str) -> None:
    x = source_tags(lm)["v1"] = off_branches(lm, a)
    with unreadable_log(lm, x):
        lm.work(2)
    assert (states(), tags(lm)) == ({"v1": "Unreadable at source"}, {})
    forget_tag(lm, "v1")
    assert (states(), tags(lm)) == ({}, {})


def test_107_a_tag_that_comes_back_to_what_was_read_is_up_to_date(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    x = source_tags(lm)["v1"] = off_branches(lm, a)
    with unreadable_log(lm, x):
        lm.work(1)
        source_tags(lm)["v1"] = a
        lm.work(1)
    assert states() == {"v1": "Up to date"}


@pytest.mark.parametrize("arrives", [False, True])
def test_109_a_worker_ends_at_the_deletion_of_a_tag_and_then_there_is_a_pause(
    lm: Deployment, a: str, arrives: bool
) -> None:
    b = moved_tag(lm, a)
    delete = lm.eu.delete_tag

    def dies(*given: str) -> None:
        if arrives:
            delete(*given)
        change(paused=True)
        raise KeyboardInterrupt

    with mock.patch.object(lm.eu, "delete_tag", dies), pytest.raises(KeyboardInterrupt):
        lm.work(2)
    Duty.objects.update(holder="", until=None)
    lm.work(2)
    told = tag_readings(Mirror.objects.get(), amount=9)[0]
    assert (told.status, told.mirror_commit, tags(lm)) == ("Waiting for its commit", "", {} if arrives else {"v1": a})
    change(paused=False)
    lm.work(2)
    assert (states(), tags(lm)) == ({"v1": "Up to date"}, {"v1": b})
    assert [why for why, _, _ in history("v1")] == ["first-promotion", "source-moved"]


def test_a_tag_whose_deletion_was_given_up_is_where_it_is(lm: Deployment, a: str) -> None:
    moved_tag(lm, a)
    with mock.patch.object(lm.eu, "delete_tag", side_effect=Denied("no")):
        lm.work(1)
    source_tags(lm)["v1"] = a
    lm.work(2)
    assert (states(), tags(lm)) == ({"v1": "Up to date"}, {"v1": a})


@pytest.mark.parametrize("whose", ["tag", "branch"])
def test_114_a_log_that_broke_off_keeps_no_tag_waiting_that_does_without_it(lm: Deployment, a: str, whose: str) -> None:
    """What was read of it lies beside what is read for the other tags."""
    x, y = (lm.lake.record_tree((a,), lm.lake.trees[a], name) for name in "xy")
    merged = lm.lake.record_tree((x, y), lm.lake.trees[a], "merge")
    refs = source_tags(lm) if whose == "tag" else lm.lake.repository.branches
    refs["odd"] = merged
    with failing(lm, lambda commit: commit in (x, y)):
        lm.work(1)
        v1 = source_tags(lm)["v1"] = off_branches(lm, a)
        lm.work(2)
        assert tags(lm) == {"v1": v1}
        source_tags(lm)["v2"] = merged
        lm.work(1)
        assert states()["v2"] == "Unreadable at source"
    lm.work(3)
    assert {**branches(lm), **tags(lm)}.items() >= {"odd": merged, "v1": v1, "v2": merged}.items()
    assert not UnplacedCommit.objects.exists()


@pytest.mark.parametrize("beside", [False, True])
def test_114_what_was_read_of_a_broken_off_history_is_not_read_again(lm: Deployment, a: str, beside: bool) -> None:
    """A tag's, and a branch's with a root of its own `beside` it; a tag that shares nothing with them is left out."""
    root = lm.lake._record((), "", "a root of its own", {})
    (x, y), (v, w) = ([lm.lake._record((of,), "", name, {}) for name in "xy"] for of in (root, a))
    odd = lm.lake._record((x, y), "", "merge", {})
    lm.lake.repository.branches.update({"odd": odd} if beside else {})
    v1 = source_tags(lm)["v1"] = lm.lake._record((v, w), "", "merge", {})
    source_tags(lm)["lone"] = lm.lake._record((), "", "another root", {})
    with failing(lm, lambda commit: commit in (x, y, v, w)):
        lm.work(1)
        kept = set(UnplacedCommit.objects.values_list("sha", flat=True))
        assert kept >= ({odd, v1} if beside else {v1})
    asked = list[str]()
    with failing(lm, lambda commit: bool(asked.append(commit))):
        lm.work(1)
    assert {v, w} & set(asked)
    assert v1 not in asked


def test_116_a_tag_that_is_made_again_at_what_can_not_be_read_is_there(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    forget_tag(lm, "v1")
    assert (states(), tags(lm)) == ({}, {})
    x = source_tags(lm)["v1"] = off_branches(lm, a)
    with unreadable_log(lm, x):
        lm.work(2)
        assert (states(), tags(lm)) == ({"v1": "Unreadable at source"}, {})
    lm.work(2)
    assert (states(), tags(lm)) == ({"v1": "Up to date"}, {"v1": x})


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("moved", [False, True])
def test_117_a_tag_that_somebody_moved_or_deleted_and_that_can_not_be_put_back_is_said_to_be(
    lm: Deployment, a: str, moved: bool, own: bool
) -> None:
    """Whoever it was: a deletion may also be a late call of ours (`own`)."""
    source_tags(lm)["v1"] = a
    lm.work(2)
    if own:
        MoveIntent.objects.create(mirror=Mirror.objects.get(), name="v1", is_tag=True, to_commit="", at=clock.now())
    root = lm.lake.repository.commits[a].parents[0]
    tags(lm).pop("v1")
    tags(lm).update({"v1": root} if moved else {})
    lm.eu.failing |= dict.fromkeys(["create_tag", "delete_tag"], Denied("protected"))
    lm.work(3)
    told = tag_readings(Mirror.objects.get(), amount=9)[0]
    assert (told.status, told.mirror_commit) == ("Tampered", root if moved else "")
    lm.eu.failing.clear()
    lm.work(2)
    assert (states(), tags(lm)) == ({"v1": "Up to date"}, {"v1": a})


def test_117_a_tag_that_somebody_put_back_is_where_it_is(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    del tags(lm)["v1"]
    lm.eu.failing["create_tag"] = Denied("protected")
    lm.work(1)
    assert states() == {"v1": "Tampered"}
    tags(lm)["v1"] = a
    lm.work(1)
    assert states() == {"v1": "Up to date"}


@pytest.mark.parametrize("call", ["delete_tag", "create_tag"])
def test_109_a_tag_that_can_not_be_brought_on_its_way_is_said_to_be_where_it_is(
    lm: Deployment, a: str, call: str
) -> None:
    b = moved_tag(lm, a)
    with mock.patch.object(lm.eu, call, side_effect=Denied("protected")):
        lm.work(3)
        told = tag_readings(Mirror.objects.get(), amount=9)[0]
        assert (told.mirror_commit, told.status) == (tags(lm).get("v1", ""), "Waiting for its commit")
    lm.work(2)
    assert (states(), tags(lm)) == ({"v1": "Up to date"}, {"v1": b})


def test_108_a_tag_that_somebody_moved_is_put_back_although_nothing_is_known_of_the_sources(
    lm: Deployment, a: str
) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    SourceTag.objects.all().delete()
    x = source_tags(lm)["v1"] = off_branches(lm, a)
    tags(lm)["v1"] = lm.lake.repository.commits[a].parents[0]
    with unreadable_log(lm, x):
        lm.work(2)
        assert (states(), tags(lm)) == ({"v1": "Unreadable at source"}, {"v1": a})


def page_of_tags(owner: User) -> str:
    client = Client()
    client.force_login(owner)
    return client.get("/mirrors/lake-eu/").content.decode()


def test_134_tags_that_nobody_could_list_for_long_are_unknown(lm: Deployment) -> None:
    Mirror.objects.update(tags=True)
    a = mirrored(lm, a=b"1")
    source_tags(lm)["v1"] = a
    lm.work(2)
    source_tags(lm)["v1"] = off_branches(lm, a)
    lm.us.failing["list_tags"] = RemoteFailure("500")
    lm.work(1)
    Repository.objects.update(tags_unseen_since=F("tags_unseen_since") - timedelta(hours=2))
    status = mirror_status(Mirror.objects.get())
    assert (status.state, states()) == ("unknown", {"v1": "Unknown"})
    assert "the tags can't be listed" in status.sentence
    del lm.us.failing["list_tags"]
    lm.work(2)
    assert Repository.objects.get().tags_unseen_since is None
    assert states() == {"v1": "Up to date"}


def test_134_no_tag_is_up_to_date_while_the_source_was_not_looked_at_for_long(lm: Deployment) -> None:
    Mirror.objects.update(tags=True)
    source_tags(lm)["v1"] = mirrored(lm, a=b"1")
    lm.work(2)
    assert states() == {"v1": "Up to date"}
    Repository.objects.update(looked_at=F("looked_at") - timedelta(hours=2))
    assert states() == {"v1": "Unknown"}
    Repository.objects.update(looked_at=clock.now(), frozen_reason="another one")
    assert states() == {"v1": "Unknown"}


def test_136_our_deletion_that_was_not_noted_stays_while_the_tag_is_at_what_can_not_be_read(lm: Deployment) -> None:
    Mirror.objects.update(tags=True)
    a = mirrored(lm, a=b"1")
    source_tags(lm)["v1"] = a
    lm.work(2)
    delete = lm.eu.delete_tag

    def dies(*given: str) -> None:
        delete(*given)
        raise KeyboardInterrupt

    with mock.patch.object(lm.eu, "delete_tag", dies), pytest.raises(KeyboardInterrupt):
        forget_tag(lm, "v1")
    assert tags(lm) == {}
    Duty.objects.update(holder="", until=None)
    made = source_tags(lm)["v1"] = off_branches(lm, a)
    with unreadable_log(lm, made):
        lm.work(3)
        assert tags(lm) == {}
    lm.work(3)
    assert tags(lm) == {"v1": made}


def test_136_a_tag_on_its_way_is_deleted_and_made_again_in_a_pause(lm: Deployment) -> None:
    Mirror.objects.update(tags=True)
    a = mirrored(lm, a=b"1")
    source_tags(lm)["v1"] = a
    lm.work(2)
    source_tags(lm)["v1"] = off_branches(lm, a)
    with mock.patch.object(lm.eu, "create_tag", side_effect=Denied("no")):
        lm.work(2)
        assert tags(lm) == {}
        change(paused=True)
        forget_tag(lm, "v1")
    made = source_tags(lm)["v1"] = lm.lake.record_tree((a,), lm.lake.trees[a], "x")
    lm.arrive()
    with unreadable_log(lm, made):
        lm.work(2)
        change(paused=False)
        lm.work(3)
        assert tags(lm) == {}


def test_171_a_tag_whose_name_a_kept_branch_has_says_so(lm: Deployment, a: str) -> None:
    lm.lake.repository.branches["x"] = a
    lm.work(2)
    change(selected={"include": ["main"], "exclude": []})
    del lm.lake.repository.branches["x"]
    source_tags(lm)["x"] = a
    lm.work(2)
    assert states()["x"] == "Name taken by a branch"
    assert "The mirror keeps a branch of this name" in Duty.objects.get(kind="promote").outcome
    change(selected={"include": ["*"], "exclude": []})
    for _ in range(3):  # as the failure says
        lm.work(1)
        SourceBranch.objects.update(missing_since=F("missing_since") - timedelta(minutes=2))
    assert states()["x"] == "Up to date"


def test_171_and_so_does_a_branch_whose_name_a_kept_tag_has(lm: Deployment, a: str) -> None:
    source_tags(lm)["x"] = a
    lm.work(2)
    Mirror.objects.update(tags=False)
    del source_tags(lm)["x"]
    lm.lake.repository.branches["x"] = a
    lm.work(2)
    assert "The mirror has a tag of this name" in Duty.objects.get(kind="promote").outcome


def test_209_tags_that_were_deleted_long_ago_are_not_shown_when_tags_are_followed_again(lm: Deployment, a: str) -> None:
    source_tags(lm)["v1"] = a
    lm.work(2)
    forget_tag(lm, "v1")
    for follow in (False, True):
        change(tags=follow)
        lm.work(1)
    assert (states(), tags(lm)) == ({}, {})
