"""The database is lost: the mirrors' rows are made again from the destination, and nothing there moves by it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from django.db.models.functions import Now

from audit.models import AuditEvent
from core.errors import Unreachable
from core.mirroring.states import State
from core.pauses import Pause, of_pause
from db import clock
from deployment import config
from jobs.models import Duty
from mirrors.models import Blocker, Candidate, Commit, Mirror, MirrorBranch, Promotion, Repository, SourceBranch
from mirrors.queries.certificates import Certificate, describe
from mirrors.status import mirror as readings
from tests.fakes import FakeRepository, FakeStore, Lake
from tests.mirrors.harness import NAMESPACE, Deployment, told_from_cache

pytestmark = pytest.mark.django_db(transaction=True)

DESCRIPTOR = f"{NAMESPACE}/_lakemirror/mirror.json"
CERTIFICATE = f"{NAMESPACE}/_lakemirror/certificates/main.json"
WRITES = {"create_branch", "hard_reset_branch", "delete_branch", "put_commit_record", "create_mirror_repository"}


def lose_database() -> None:
    Duty.objects.all().delete()
    Mirror.objects.all().delete()
    Repository.objects.all().delete()


def rebuild(*options: str, fails: bool = False) -> str:
    out = StringIO()
    if fails:
        with pytest.raises(CommandError):
            call_command("rebuild", "--from-destination", *options, stdout=out)
    else:
        call_command("rebuild", "--from-destination", *options, stdout=out)
    return out.getvalue()


def commit(lm: Deployment, *held: str, branch: str = "main", **files: bytes) -> str:
    made = lm.lake.commit(branch, files=dict(files))
    lm.arrive(*(lm.lake.address_of(made, path) for path in held))
    return made


def promoted(lm: Deployment, branch: str = "main", **files: bytes) -> str:
    made = commit(lm, branch=branch, **files)
    lm.work()
    assert lm.head(branch) == made
    return made


def heads_seen(lm: Deployment, rounds: int = 4) -> list[str]:
    """What readers of the mirror's main see while the duties work."""
    seen = [lm.head()]
    for _ in range(rounds):
        Blocker.objects.update(look_at=Now())
        for kind in ("manage", "sense", "copy", "validate", "promote"):
            for duty in Duty.objects.filter(kind=kind):
                lm.run(duty.pk)
                seen.append(lm.head())
    return [head for n, head in enumerate(seen) if n == 0 or head != seen[n - 1]]


def state() -> str:
    return readings.mirror_status(Mirror.objects.get()).state


# --- as before ------------------------------------------------------------------------------------------------------


def test_rows_come_back_as_they_were_and_the_loops_go_on(lm: Deployment) -> None:
    first = promoted(lm, a=b"1")
    before = describe(Mirror.objects.select_related("source").get())
    lose_database()
    lm.eu.calls.clear()
    told = rebuild()
    assert "lake-eu" in told
    assert "1 rebuilt" in told
    assert not WRITES.intersection(lm.eu.calls)
    mirror = Mirror.objects.select_related("source").get()
    assert describe(mirror) == before
    assert mirror.state == Mirror.State.ACTIVE
    branch = MirrorBranch.objects.get()
    assert (branch.name, branch.head, branch.certified) == ("main", first, first)
    assert heads_seen(lm) == [first]
    assert MirrorBranch.objects.get().position == 0
    assert state() == State.UP_TO_DATE
    assert promoted(lm, b=b"2")
    assert Promotion.objects.first().why == "advanced"
    assert lm.torn() == []


def test_a_pause_comes_back_with_its_reason_and_end(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    now = clock.now()
    pause = Pause("new disks", now + timedelta(hours=2), now, "olga")
    Mirror.objects.update(**of_pause(pause))
    lm.work(1)
    lose_database()
    rebuild()
    assert Mirror.objects.get().pause == pause


def test_81_what_readers_see_is_checked_where_heads_alone_are(lm: Deployment) -> None:
    """The source has moved on, to what has not arrived: the mirror's own head is looked at all the same."""
    Mirror.objects.update(history="head")
    head = promoted(lm, a=b"1")
    lm.lake.commit(files={"b": b"2"})
    lose_database()
    rebuild()
    lm.work()
    assert MirrorBranch.objects.get(head=head).proven
    lose_database()
    rebuild()
    lm.eu_store.hidden.add(f"{NAMESPACE}/{lm.lake.address_of(head, 'a')}")
    lm.small_checks = True
    lm.work(4)
    assert (lm.head(), MirrorBranch.objects.get().proven) == (head, False)
    assert list(Blocker.objects.filter(kind="object").values_list("reason", flat=True)) == ["missing"]


def test_84_a_source_recreated_behind_a_cache_moves_nothing_of_books_that_know_no_commit(lm: Deployment) -> None:
    head = promoted(lm, a=b"1")
    old = lm.us.repositories.pop("lake").info
    made = Lake(lm.us, FakeStore())
    made.repository.branches["main"] = made._record((), "", "Repository created", {})
    born = replace(lm.us.repositories["lake"].info, creation_date=old.creation_date + 100)
    lm.us.repositories["lake"].info = born
    with told_from_cache(lm.us, lambda name: replace(born, creation_date=old.creation_date)):
        lose_database()
        rebuild()
        lm.work()
        assert lm.head() == head
    lm.work()
    assert (lm.head(), state()) == (head, State.FROZEN)


def test_127_a_destination_restored_to_where_the_rebuild_found_it_blames_nobody(lm: Deployment) -> None:
    old = promoted(lm, a=b"1")
    new = lm.lake.commit(files={"b": b"2"})
    lose_database()
    rebuild()
    lm.work(2)
    lm.arrive()
    lm.work(2)
    assert lm.head() == new
    lm.eu.repositories["lake-eu"].branches["main"] = old
    lm.work(3)
    moves = Promotion.objects.filter(branch="main").order_by("pk")
    assert list(moves.values_list("why", flat=True)) == ["advanced", "back-where-it-was", "put-back"]
    assert lm.head() == new


def test_it_is_written_into_the_audit_trail(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    lose_database()
    rebuild()
    event = AuditEvent.objects.get()
    assert (event.actor, event.action, event.arn) == (
        "system:command-line",
        "fs:MirrorRepository",
        "arn:lakefs:fs:::repository/lake",
    )
    assert event.after["mirror"] == "lake-eu"


def test_a_second_time_changes_nothing(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    lose_database()
    rebuild()
    lm.work()
    rows = [list(model.objects.order_by("pk").values()) for model in (Mirror, MirrorBranch, Repository, SourceBranch)]
    told = rebuild()
    assert "unchanged" in told
    assert rows == [
        list(model.objects.order_by("pk").values()) for model in (Mirror, MirrorBranch, Repository, SourceBranch)
    ]
    assert AuditEvent.objects.count() == 1


def test_a_dry_run_tells_and_writes_nothing(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    lose_database()
    told = rebuild("--dry-run")
    assert "would be rebuilt" in told
    assert not Mirror.objects.exists()
    assert not Repository.objects.exists()


def test_a_mirror_that_had_promoted_nothing_begins_again(lm: Deployment) -> None:
    lm.work(1, look=False)
    MirrorBranch.objects.all().delete()
    lm.eu.repositories["lake-eu"].branches.clear()
    lose_database()
    rebuild()
    assert promoted(lm, a=b"1")


# --- nothing moves because our rows are new -------------------------------------------------------------------------


def test_an_unreachable_source_moves_nothing_and_blames_nobody(lm: Deployment) -> None:
    first = promoted(lm, a=b"1")
    lm.lake.repository.branches["dev"] = first
    promoted(lm, "dev", b=b"2")
    heads = dict(lm.eu.repositories["lake-eu"].branches)
    lm.eu_store.objects.pop(f"{NAMESPACE}/_lakemirror/certificates/dev.json")
    lose_database()
    rebuild()
    lm.us.failing = {
        name: Unreachable("us-east-1 is gone") for name in ("list_branches", "list_repositories", "get_repository")
    }
    Repository.objects.update(looked_at=F("looked_at") - timedelta(hours=1))
    lm.eu.calls.clear()
    lm.work(4)
    assert lm.eu.repositories["lake-eu"].branches == heads
    assert not WRITES.intersection(lm.eu.calls) - {"create_mirror_repository"}
    assert set(MirrorBranch.objects.values_list("name", "stray")) == {("main", False), ("dev", True)}
    assert not Promotion.objects.exists()
    assert state() == State.UNKNOWN
    assert "us-east-1 is gone" in readings.mirror_status(Mirror.objects.get()).sentence
    lm.us.failing = {}
    lm.work(4)
    assert lm.eu.repositories["lake-eu"].branches == heads
    assert set(MirrorBranch.objects.values_list("name", "stray", "proven")) == {
        ("main", False, True),
        ("dev", False, True),
    }
    assert state() == State.UP_TO_DATE


def test_a_source_that_went_on_is_followed_forwards_only(lm: Deployment) -> None:
    first = promoted(lm, a=b"1")
    lose_database()
    second, third = commit(lm, b=b"2"), commit(lm, "c", c=b"3")
    rebuild()
    assert heads_seen(lm) == [first, second]
    lm.arrive()
    lm.work()
    assert lm.head() == third
    assert set(Promotion.objects.values_list("why", flat=True)) == {"advanced"}
    assert lm.torn() == []


@pytest.mark.parametrize("certificate", ["right", "older", "none"])
def test_a_source_that_moved_back_is_followed_once_its_new_head_is_complete(lm: Deployment, certificate: str) -> None:
    """Commits that the branch has left behind are never shown again on the way."""
    promoted(lm, a=b"1")
    older = lm.eu_store.objects[CERTIFICATE]
    middle = promoted(lm, b=b"2")
    last = promoted(lm, c=b"3")
    if certificate == "older":
        lm.eu_store.objects[CERTIFICATE] = older
    elif certificate == "none":
        del lm.eu_store.objects[CERTIFICATE]
    lose_database()
    lm.lake.repository.branches["main"] = middle
    moved = commit(lm, "d", d=b"4")
    rebuild()
    assert heads_seen(lm) == [last]
    lm.arrive()
    assert heads_seen(lm)[-2:] == [last, moved]
    if certificate == "right":
        assert Promotion.objects.first().why == "source-moved"


def test_a_branch_that_the_source_deleted_meanwhile_goes_after_two_looks(lm: Deployment) -> None:
    lm.lake.repository.branches["dev"] = promoted(lm, a=b"1")
    promoted(lm, "dev", b=b"2")
    lose_database()
    del lm.lake.repository.branches["dev"]
    rebuild()
    lm.work()
    assert lm.head("dev")
    assert not MirrorBranch.objects.get(name="dev").stray
    SourceBranch.objects.filter(name="dev").update(missing_since=F("missing_since") - timedelta(seconds=61))
    lm.work(1)
    assert lm.head("dev") == ""
    assert lm.head()


def test_a_branch_that_no_certificate_tells_of_is_shown_and_never_touched(lm: Deployment) -> None:
    first = promoted(lm, a=b"1")
    lm.eu.repositories["lake-eu"].branches["theirs"] = first
    lose_database()
    rebuild()
    lm.work()
    SourceBranch.objects.update(missing_since=F("missing_since") - timedelta(seconds=61))
    lm.work()
    assert lm.head("theirs") == first
    assert MirrorBranch.objects.get(name="theirs").stray
    assert state() == State.TAMPERED


def test_what_has_vanished_at_the_destination_is_noticed_and_nothing_moves(lm: Deployment) -> None:
    first = promoted(lm, a=b"1")
    address = lm.lake.address_of(first, "a")
    lose_database()
    del lm.eu_store.objects[f"{NAMESPACE}/{address}"]
    rebuild()
    assert heads_seen(lm) == [first]
    assert Mirror.objects.get().blockers.get().address == address


def add_second_mirror(lm: Deployment, head: str, certificate: dict[str, Any]) -> FakeRepository:
    """The mirror `lake-two` beside `lake-eu`, at an earlier commit that its certificate tells of."""
    other = "s3://dst/other"
    there = lm.eu.add_repository("lake-two", other, read_only=True)
    there.commits.update(lm.eu.repositories["lake-eu"].commits)
    there.branches["main"] = head
    about = {"mirror": "lake-two", "storage_namespace": other, "creation_date": there.info.creation_date}
    told = json.loads(lm.eu_store.objects[DESCRIPTOR]) | about
    lm.eu_store.put(f"{other}/_lakemirror/mirror.json", json.dumps(told).encode())
    facts = {name: certificate[name] for name in Certificate.__slots__} | {"storage_namespace": other}
    made = Certificate(**facts).document(branch="main", at=certificate["at"])
    lm.eu_store.put(f"{other}/_lakemirror/certificates/main.json", json.dumps(made).encode())
    return there


def test_two_mirrors_of_one_source_that_stand_apart_keep_their_places(lm: Deployment) -> None:
    """Neither head is then taken for the source's last one: else a move back would show what lies between them."""
    first = promoted(lm, a=b"1")
    certificate = json.loads(lm.eu_store.objects[CERTIFICATE])
    second = promoted(lm, b=b"2")
    two = add_second_mirror(lm, first, certificate)
    lose_database()
    lm.lake.repository.branches["main"] = first
    commit(lm, c=b"3")
    moved = commit(lm, "d", d=b"4")
    assert "2 rebuilt" in rebuild()
    assert heads_seen(lm) == [second]
    lm.arrive()
    assert heads_seen(lm) == [second, moved]
    assert two.branches["main"] == first


def test_a_certificate_of_another_commit_is_written_anew(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    older = lm.eu_store.objects[CERTIFICATE]
    last = promoted(lm, b=b"2")
    lm.eu_store.objects[CERTIFICATE] = older
    lose_database()
    rebuild()
    assert not SourceBranch.objects.exists()
    assert not MirrorBranch.objects.get().stray
    assert heads_seen(lm) == [last]
    assert json.loads(lm.eu_store.objects[CERTIFICATE])["commit"] == last


def test_a_damaged_certificate_is_named_and_proves_nothing(lm: Deployment) -> None:
    first = promoted(lm, a=b"1")
    lm.eu_store.put(CERTIFICATE, b"{")
    lose_database()
    assert "the certificate of main is damaged" in rebuild()
    assert not SourceBranch.objects.exists()
    assert heads_seen(lm) == [first]


def test_another_repository_under_the_sources_name_freezes_the_mirror(lm: Deployment) -> None:
    first = promoted(lm, a=b"1")
    lose_database()
    info = lm.lake.repository.info
    lm.lake.repository.info = replace(info, creation_date=info.creation_date + 5)
    rebuild()
    assert heads_seen(lm) == [first]
    assert state() == State.FROZEN


# --- what is left alone ---------------------------------------------------------------------------------------------


OLD = {"depth": "etag", "content_sample": 1.0, "imported": "block", "paused": False}
"""What the settings of every version have."""


def change_descriptor(lm: Deployment, **change: Any) -> None:
    lm.eu_store.put(DESCRIPTOR, json.dumps(json.loads(lm.eu_store.objects[DESCRIPTOR]) | change).encode())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"mirror": "other"}, "name"),
        ({"region": "us-east-1"}, "region"),
        ({"storage_namespace": "s3://dst/elsewhere"}, "storage namespace"),
        ({"creation_date": 7}, "creation date"),
        ({"creation_date": "7"}, "creation_date"),
        ({"creation_date": 2**70}, "creation_date"),
        ({"source": None}, "source"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"settings": OLD | {"depth": "deep"}}, "depth"),
        ({"settings": OLD | {"content_sample": 2.0}}, "content_sample"),
        ({"settings": OLD | {"imported": "maybe"}}, "imported"),
        ({"settings": OLD | {"rpo_seconds": 0}}, "rpo_seconds"),
    ],
)
def test_a_descriptor_that_is_not_of_this_repository_is_left_alone(
    lm: Deployment, change: dict[str, Any], says: str
) -> None:
    promoted(lm, a=b"1")
    change_descriptor(lm, **change)
    lose_database()
    told = rebuild(fails=True)
    assert "skipped" in told
    assert says in told
    assert not Mirror.objects.exists()
    assert not Repository.objects.exists()


def test_an_unknown_source_region_is_named(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    source = json.loads(lm.eu_store.objects[DESCRIPTOR])["source"]
    change_descriptor(lm, source=source | {"region": "mars"})
    lose_database()
    assert "mars" in rebuild(fails=True)


def test_a_mirror_that_became_writable_is_left_alone(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    there = lm.eu.repositories["lake-eu"]
    there.info = replace(there.info, read_only=False)
    lose_database()
    assert "writable" in rebuild(fails=True)
    assert not Mirror.objects.exists()


def test_a_read_only_repository_without_descriptor_is_named_and_others_are_made(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    lm.eu.add_repository("byhand", "s3://dst/byhand", read_only=True)
    lm.eu.add_repository("workplace", "s3://dst/workplace")
    lm.eu.add_repository("elsewhere", "local://elsewhere")
    lose_database()
    told = rebuild(fails=True)
    assert "byhand" in told
    assert "adopt" in told
    assert "1 rebuilt" in told
    assert "workplace" not in told
    assert Mirror.objects.get().name == "lake-eu"


def test_a_region_or_store_that_can_not_be_asked_is_named(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    lose_database()
    lm.eu_store.down = Unreachable("the store does not answer")
    assert "the store does not answer" in rebuild(fails=True)
    lm.eu_store.down = None
    lm.eu.failing["list_repositories"] = Unreachable("eu-west-1 does not answer")
    assert "eu-west-1 does not answer" in rebuild(fails=True)
    lm.eu.failing.clear()
    assert "1 rebuilt" in rebuild()


def test_one_mirror_or_one_region_may_be_chosen(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    lose_database()
    assert "no repository of that name" in rebuild("--mirror", "nobody", fails=True)
    assert "not a mirror" in rebuild("--mirror", "lake", fails=True)
    rebuild("--region", "us-east-1")
    assert not Mirror.objects.exists()
    rebuild("--region", "mars", fails=True)
    assert "1 rebuilt" in rebuild("--region", "eu-west-1", "--mirror", "lake-eu")


def test_a_source_that_is_known_under_other_pins_is_left_alone(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    lose_database()
    Repository.objects.create(
        region="us-east-1", name="lake", storage_namespace="s3://src/new", creation_date=1, default_branch="main"
    )
    assert "is not the one" in rebuild(fails=True)
    assert not Mirror.objects.exists()


def test_the_target_is_kept_and_what_was_too_late_is_forgotten(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    Mirror.objects.update(rpo_seconds=60)
    lm.work(1)
    lose_database()
    rebuild()
    assert (Mirror.objects.get().rpo_seconds, Mirror.objects.get().watched_since) == (60, None)


def test_only_some_rows_lost_is_mended_beside_the_others(lm: Deployment) -> None:
    """The source is known and was looked at: its commits are the rebuilt mirror's too."""
    first = promoted(lm, a=b"1")
    second = promoted(lm, b=b"2")
    Duty.objects.exclude(kind="sense").delete()
    Mirror.objects.all().delete()
    rebuild()
    assert Mirror.objects.get().commits.count() == Commit.objects.count() == 3
    assert first != second
    assert heads_seen(lm) == [second]
    assert MirrorBranch.objects.get().position == SourceBranch.objects.get().position
    assert state() == State.UP_TO_DATE


def test_repositories_are_listed_in_pages_of_the_size_that_was_told(
    lm: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    promoted(lm, a=b"1")
    for n in range(4):
        lm.eu.add_repository(f"other-{n}", f"s3://dst/other-{n}")
    lose_database()
    told = replace(config.current(), list_repositories_page_size=2)
    monkeypatch.setattr(config, "current", lambda: told)
    with mock.patch.object(lm.eu, "list_repositories", side_effect=lm.eu.list_repositories) as calls:
        rebuild()
    assert {asked.kwargs["amount"] for asked in calls.call_args_list} == {2}
    assert Mirror.objects.get().name == "lake-eu"


def test_139_a_branch_is_not_up_to_date_before_somebody_has_looked_at_the_source(lm: Deployment) -> None:
    commit(lm, a=b"1")
    lm.work(4)
    lose_database()
    rebuild()
    looks = Duty.objects.filter(kind="sense")
    kept = list(looks.values())
    lm.run(looks.get().pk)  # its commits are stored, and it ends before their branches are
    Candidate.objects.all().delete()
    SourceBranch.objects.update(position=-1)
    MirrorBranch.objects.update(position=-1)
    looks.delete()
    lm.work(3)
    for status in (readings.mirror_status(Mirror.objects.get()), *readings.brief_statuses(Mirror.objects.all())):
        assert (status.state, status.reason_code) == ("unknown", "not_looked_yet")
        assert [branch.lag for branch in status.branches] == [None]
    Duty.objects.bulk_create(Duty(**row) for row in kept)
    lm.work(2)
    assert readings.mirror_status(Mirror.objects.get()).state == "up_to_date"
