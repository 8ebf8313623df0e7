"""A native mirror says why the stores have not brought what it waits for; nothing else follows from that."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.errors import Denied, Unreachable
from core.replication.facts import SourceObject, Status, StoreKind
from core.types import ReplicationRule
from db import clock
from jobs.models import Duty
from mirroring import native_replication
from mirrors.models import Blocker, Mirror, ReplicationFailure
from mirrors.queries.missing import blockers_of, thing_of
from mirrors.status.mirror import mirror_statuses
from mirrors.transitions.causes import ask_again
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db

RULE = ReplicationRule("to-eu", True, "", "dst")


@pytest.fixture
def lake(lm: Deployment) -> Deployment:
    """A mirror that has all, between buckets with versions, without a rule; the store answers."""
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work(3)
    lm.us_store.bucket_versioning["src"] = lm.eu_store.bucket_versioning["dst"] = "Enabled"
    lm.replication.away = None
    return lm


def waits_for(lake: Deployment, *names: str) -> list[str]:
    """A commit of which these files are missing, and nothing else; their addresses."""
    head = lake.lake.commit(files={name: name.encode() for name in names})
    addresses = [lake.lake.address_of(head, name) for name in names]
    lake.arrive(*addresses)
    lake.work(3)
    return addresses


def look(lake: Deployment) -> Mirror:
    """One round of the duty that asks."""
    Blocker.objects.update(cause_at=None)
    lake.run(Duty.objects.get(kind="manage").pk)
    return Mirror.objects.get()


def says(lake: Deployment, address: str, status: Status, **ago: float) -> None:
    uri = f"{lake.lake.repository.info.storage_namespace.rstrip('/')}/{address}"
    lake.replication.objects[uri] = SourceObject(status, clock.now() - timedelta(**ago or {"hours": 16}))


def causes() -> list[str]:
    return list(Blocker.objects.order_by("address").values_list("cause", flat=True))


def test_without_a_rule_every_file_says_so_and_no_object_is_asked_for(lake: Deployment) -> None:
    waits_for(lake, "x", "y")
    mirror = look(lake)
    assert causes() == ["NoRule", "NoRule"]
    assert lake.replication.asked == []
    assert [(one["cause"], one["number"]) for one in mirror.replication["causes"]] == [("NoRule", 2)]


def test_each_object_has_the_cause_that_the_store_tells(lake: Deployment) -> None:
    lake.us_store.rules["src"] = [RULE]
    failed, copied, older = waits_for(lake, "x", "y", "z")
    says(lake, failed, Status.FAILED)
    says(lake, copied, Status.COMPLETED)
    look(lake)
    told = dict(Blocker.objects.values_list("address", "cause"))
    assert told == {failed: "FailedForGood", copied: "CompletedButMissing", older: "BeforeRule"}
    assert [row.address for row in blockers_of(Mirror.objects.get(), cause="BeforeRule")] == [older]


def test_the_reason_of_an_event_is_told(lake: Deployment) -> None:
    lake.us_store.rules["src"] = [RULE]
    [address] = waits_for(lake, "x")
    says(lake, address, Status.FAILED)
    row, mirror = Blocker.objects.get(), Mirror.objects.get()
    failure = ReplicationFailure.objects.create(
        source=mirror.source, address_hash=row.address_hash, bucket="dst", reason="DstKmsKeyNotFound", at=clock.now()
    )
    look(lake)
    assert causes() == ["KmsKey"]
    failure.bucket = "another"
    failure.save()
    look(lake)
    assert causes() == ["FailedForGood"], "it went to another mirror's bucket"
    ReplicationFailure.objects.update(bucket="", at=clock.now() - timedelta(hours=25))
    look(lake)
    assert causes() == ["FailedForGood"], "it is a day old"


def test_missing_rights_are_told_as_such(lake: Deployment) -> None:
    waits_for(lake, "x")
    lake.replication.away = Denied("access denied")
    look(lake)
    assert causes() == ["RightsMissing"]


def test_a_store_that_is_away_leaves_what_was_known_and_fails_no_duty(lake: Deployment) -> None:
    waits_for(lake, "x")
    look(lake)
    lake.replication.away = Unreachable("away")
    look(lake)
    assert causes() == ["NoRule"]
    assert Duty.objects.get(kind="manage").failures == 0


def test_what_has_arrived_is_explained_no_more(lake: Deployment) -> None:
    waits_for(lake, "x")
    look(lake)
    lake.arrive()
    lake.work(3)
    assert lake.head() == lake.us.repositories["lake"].branches["main"]
    assert look(lake).replication is None


def test_what_turns_out_to_be_wrong_has_no_cause(lake: Deployment) -> None:
    [address] = waits_for(lake, "x")
    look(lake)
    lake.eu_store.hidden.clear()
    lake.eu_store.objects[f"s3://dst/lake/{address}"] = b"other bytes"
    lake.work(3)
    row = Blocker.objects.get()
    assert row.reason == "size-differs"
    assert thing_of(row).cause == ""


def test_a_mirror_that_is_managed_now_says_nothing_of_rules(lake: Deployment) -> None:
    waits_for(lake, "x")
    look(lake)
    Mirror.objects.update(object_replication="managed")
    lake.run(Duty.objects.get(kind="manage").pk)
    assert (causes(), Mirror.objects.get().replication) == ([""], None)


def test_it_asks_for_so_many_objects_at_a_time_and_for_each_once(
    lake: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_replication, "MOST_HEADS", 2)
    lake.us_store.rules["src"] = [RULE]
    waits_for(lake, "v", "w", "x", "y", "z")
    manage = Duty.objects.get(kind="manage").pk
    Blocker.objects.update(cause_at=None)
    lake.replication.asked.clear()
    for asked in (2, 4, 5, 5):
        lake.run(manage)
        assert len(set(lake.replication.asked)) == len(lake.replication.asked) == asked
    ask_again(Mirror.objects.get())
    lake.run(manage)
    assert len(lake.replication.asked) == 7, "somebody wants to know now"


def test_the_time_for_objects_is_bounded(lake: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.us_store.rules["src"] = [RULE]
    monkeypatch.setattr(native_replication, "SECONDS", -1.0)
    waits_for(lake, "x")
    lake.replication.asked.clear()
    look(lake)
    assert (lake.replication.asked, causes()) == ([], [""])


def test_pending_is_late_by_what_is_usual_here(lake: Deployment) -> None:
    lake.us_store.rules["src"] = [RULE]
    lake.replication.store_kind = StoreKind.MINIO
    [address] = waits_for(lake, "x")
    says(lake, address, Status.PENDING, seconds=30)
    look(lake)
    assert causes() == ["Pending"]
    says(lake, address, Status.PENDING, minutes=16)
    look(lake)
    assert causes() == ["PendingLong"]


def test_the_page_of_a_branch_says_why_and_what_to_do(lake: Deployment) -> None:
    waits_for(lake, "x")
    mirror = look(lake)
    Blocker.objects.update(first_seen=clock.now() - timedelta(minutes=10))
    [reading] = mirror_statuses([mirror])
    assert "No enabled replication rule of src brings data/ to dst" in reading.sentence
    assert "Add a rule" in reading.sentence
