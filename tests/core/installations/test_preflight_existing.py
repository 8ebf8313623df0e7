"""What a preflight says of objects that are older than the replication rule, and how they are brought."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.errors import Denied, Unreachable
from core.installations.preflight import Check, CheckOutcome
from core.installations.preflight_existing import Sample, check_existing, sample_of
from core.installations.unreplicated_objects import Lacking, Namespaces
from core.replication.facts import SourceObject, Status, StoreKind
from core.types import ReplicationRule

PLACES = Namespaces("s3://src/lake", "s3://dst/lake")
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
SOME = Lacking(objects=2, bytes=2048, looked=3, whole=True)
RULE = ReplicationRule("to-eu", True, "lake/", "dst")


UNTOLD = Sample(StoreKind.OTHER)


def told(answer: Lacking | Unreachable, sample: Sample = UNTOLD, *rules: ReplicationRule) -> Check:
    return check_existing(PLACES, answer, sample, rules)


def written(status: Status, ago: timedelta) -> SourceObject:
    return SourceObject(status, NOW - ago)


def test_the_check_is_in_order_only_where_all_was_looked_at() -> None:
    whole, cut = Lacking(looked=3, whole=True), Lacking(looked=1200)
    states = [told(one).state for one in (whole, cut, SOME, Unreachable("down"))]
    assert states == [CheckOutcome.OK, CheckOutcome.UNKNOWN, CheckOutcome.WARNING, CheckOutcome.UNKNOWN]
    assert told(SOME).message == "Of 3 objects in s3://src/lake, 2 (2.0 KB) are not in s3://dst/lake"
    assert told(Lacking(whole=True)).message == "s3://src/lake is empty"
    assert "1,200 objects" in told(cut).message


def test_what_the_store_never_took_up_is_told_from_what_is_on_its_way() -> None:
    heads = [
        written(Status.ABSENT, timedelta(days=9)),
        written(Status.ABSENT, timedelta(days=6)),
        written(Status.ABSENT, timedelta(seconds=5)),
        written(Status.PENDING, timedelta(minutes=5)),
        written(Status.FAILED, timedelta(days=1)),
        written(Status.COMPLETED, timedelta(days=1)),
        Denied("403"),
        None,
    ]
    sample = sample_of(StoreKind.AWS, heads, NOW)
    assert str(sample) == (
        "Of the first 6 the store has 2 written before the rule, or while it was off, the last one at "
        "2026-11-20 12:00 UTC; 2 on the way; 1 that it failed to copy"
    )
    assert told(SOME, sample).message.endswith(f"are not in s3://dst/lake. {sample}")


@pytest.mark.parametrize("sample", [Sample(StoreKind.OTHER, 3, 3), Sample(StoreKind.AWS), Sample(StoreKind.MINIO, 2)])
def test_a_store_that_tells_nothing_is_given_no_words(sample: Sample) -> None:
    assert str(sample) == ""


@pytest.mark.parametrize(
    ("kind", "rule", "way"),
    [
        (StoreKind.AWS, RULE, "run S3 Batch Replication with the manifest below"),
        (StoreKind.MINIO, RULE, "let the rule replicate existing objects and start a resync (mc replicate resync"),
        (
            StoreKind.MINIO,
            ReplicationRule("to-eu", True, "", "dst", existing=True),
            "wait for MinIO's scanner, or start a resync (mc replicate resync start)",
        ),
        (StoreKind.OTHER, RULE, "any tool that preserves keys"),
    ],
)
def test_each_store_has_its_own_way_to_bring_them_and_ours_works_for_all(
    kind: StoreKind, rule: ReplicationRule, way: str
) -> None:
    fix = told(SOME, Sample(kind), rule).fix
    assert way in fix and "once with Bring it" in fix and "with managed replication" in fix
