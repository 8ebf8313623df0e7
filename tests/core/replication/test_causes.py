"""Each row of why replication has not brought an object: its code, its words, and what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.errors import Denied, Invalid, LakeMirrorError, Unreachable
from core.replication.causes import Cause, Verdict, find_cause
from core.replication.facts import Attempts, Failure, Setup, SourceObject, Status, StoreKind, status_of
from core.types import ReplicationRule

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
RULE = ReplicationRule("to-eu", enabled=True, prefix="lake/", bucket="eu")
SETUP = Setup("s3://us/lake", "s3://eu/lake", StoreKind.AWS, [RULE])
ADDRESS = "data/abc"


def ago(**times: float) -> datetime:
    return NOW - timedelta(**times)


def found(status: Status = Status.ABSENT, *, at: datetime | None = None, **more: Any) -> SourceObject:
    return SourceObject(status, at or ago(hours=16), **more)


def cause(
    answer: SourceObject | LakeMirrorError | None = None,
    *,
    failure: str | None = None,
    address: str = ADDRESS,
    **setup: Any,
) -> Verdict:
    told = None if failure is None else Failure(failure, ago(minutes=1))
    return find_cause(replace(SETUP, **setup), address, answer, told, NOW)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([], "no enabled replication rule of us brings data/ to eu"),
        ([replace(RULE, enabled=False)], "the rule 'to-eu' is disabled"),
        ([replace(RULE, prefix="lake/_lakefs/")], "the rule 'to-eu' covers only 'lake/_lakefs/'"),
        ([replace(RULE, tagged=True)], "takes only objects with tags"),
        ([replace(RULE, bucket="ap")], "the rule 'to-eu' leads to ap"),
    ],
    ids=["none", "disabled", "other-prefix", "tags", "other-bucket"],
)
def test_no_rule(rules: list[ReplicationRule], words: str) -> None:
    verdict = cause(found(), rules=rules)
    assert verdict.cause == Cause.NO_RULE
    assert words in verdict.told
    assert verdict.advice


def test_metadata_that_no_rule_covers_is_told_as_such() -> None:
    rules = [replace(RULE, prefix="lake/data/")]
    assert cause(found(), rules=rules).cause == Cause.BEFORE_RULE
    verdict = cause(found(), rules=rules, address="_lakefs/abc")
    assert (verdict.cause, "brings _lakefs/ to eu" in verdict.told) == (Cause.NO_RULE, True)


def test_a_namespace_under_another_prefix_gets_nothing() -> None:
    verdict = cause(found(), destination="s3://eu/other")
    assert verdict.cause == Cause.NO_RULE
    assert "replication keeps keys" in verdict.told


def test_rules_that_may_not_be_read_are_no_missing_rule() -> None:
    verdict = cause(found(), rules=Denied("access denied"))
    assert verdict.cause == Cause.RIGHTS_MISSING
    assert "s3:GetReplicationConfiguration on arn:aws:s3:::us" in verdict.advice
    assert cause(found(), rules=Unreachable("away")).cause == Cause.NOT_TOLD


@pytest.mark.parametrize(
    ("kind", "existing", "how"),
    [
        (StoreKind.AWS, False, "Run S3 Batch Replication"),
        (StoreKind.MINIO, False, "Start a resync"),
        (StoreKind.MINIO, True, "Wait for MinIO's scanner"),
    ],
)
def test_before_the_rule(kind: StoreKind, existing: bool, how: str) -> None:
    verdict = cause(found(), kind=kind, rules=[replace(RULE, existing=existing)])
    assert verdict.cause == Cause.BEFORE_RULE
    assert verdict.advice.startswith(how)
    assert "Bring it" in verdict.advice


def test_what_was_written_just_now_has_no_status_yet() -> None:
    assert cause(found(at=ago(seconds=20))).cause == Cause.PENDING


def test_pending_and_pending_for_long() -> None:
    assert cause(found(Status.PENDING, at=ago(seconds=50))).cause == Cause.PENDING
    usual = {"usual": timedelta(minutes=10)}
    assert cause(found(Status.PENDING, at=ago(minutes=9)), **usual).cause == Cause.PENDING
    verdict = cause(found(Status.PENDING), **usual)
    assert (verdict.cause, "pending for 16" in verdict.told) == (Cause.PENDING_LONG, True)


def test_failed_without_a_reason() -> None:
    for_good = cause(found(Status.FAILED))
    assert (for_good.cause, "does not try again" in for_good.told) == (Cause.FAILED_FOR_GOOD, True)
    retried = cause(found(Status.FAILED), kind=StoreKind.MINIO)
    assert (retried.cause, "tries again by itself" in retried.told) == (Cause.FAILED_RETRIED, True)
    assert cause(found(Status.FAILED), failure="").cause == Cause.FAILED_FOR_GOOD


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("DstPutObjectNotPermitted", Cause.TARGET_DENIED),
        ("AssumeRoleNotPermitted", Cause.TARGET_DENIED),
        ("DstBucketNotFound", Cause.TARGET_DENIED),
        ("DstKmsKeyInvalidState", Cause.KMS_KEY),
        ("DstKmsKeyNotFound", Cause.KMS_KEY),
        ("DstBucketObjectLockConfigMissing", Cause.LOCK_MISSING),
        ("DstBucketUnversioned", Cause.UNVERSIONED),
        ("SomethingNew", Cause.FAILED_FOR_GOOD),
    ],
)
def test_a_failure_is_told_by_the_reason_of_its_event(reason: str, expected: Cause) -> None:
    verdict = cause(found(Status.FAILED), failure=reason)
    assert verdict.cause == expected
    assert f"the store says {reason}" in verdict.told


def test_a_reason_of_an_event_tells_nothing_of_what_is_no_failure_any_more() -> None:
    assert cause(found(Status.PENDING, at=ago(seconds=5)), failure="DstBucketNotFound").cause == Cause.PENDING


def test_completed_but_missing() -> None:
    verdict = cause(found(Status.COMPLETED))
    assert verdict.cause == Cause.COMPLETED_BUT_MISSING
    assert "eu does not have it" in verdict.told


@pytest.mark.parametrize("status", [Status.PENDING, Status.FAILED])
def test_a_link_that_is_down_is_seen_by_the_stores_own_count(status: Status) -> None:
    down = {"kind": StoreKind.MINIO, "attempts": {"eu": Attempts(3, 21)}}
    verdict = cause(found(status), **down)
    assert verdict.cause == Cause.LINK_DOWN
    assert "3 copies to eu failed in the last minute" in verdict.told
    other = {"kind": StoreKind.MINIO, "attempts": {"ap": Attempts(3, 21)}}
    assert cause(found(status), **other).cause != Cause.LINK_DOWN


def test_kms_that_the_rule_leaves_out() -> None:
    encrypted = found(encryption="aws:kms", kms_key="arn:aws:kms:::key/1")
    verdict = cause(encrypted)
    assert (verdict.cause, "arn:aws:kms:::key/1" in verdict.told) == (Cause.KMS_KEY, True)
    assert cause(encrypted, rules=[replace(RULE, kms=True)]).cause == Cause.BEFORE_RULE


@pytest.mark.parametrize(("source", "destination", "bucket"), [("", "Enabled", "us"), ("Enabled", "Suspended", "eu")])
def test_unversioned(source: str, destination: str, bucket: str) -> None:
    verdict = cause(found(), source_versioning=source, destination_versioning=destination)
    assert (verdict.cause, verdict.told.split()[0]) == (Cause.UNVERSIONED, bucket)


def test_versioning_that_may_not_be_asked_for_is_no_cause() -> None:
    assert cause(found(), source_versioning=Denied("no")).cause == Cause.BEFORE_RULE


def test_archived() -> None:
    assert cause(found(storage_class="GLACIER")).cause == Cause.ARCHIVED


def test_missing_at_the_source_too() -> None:
    assert cause(None).cause == Cause.SOURCE_MISSING


@pytest.mark.parametrize("answer", [found(Status.REPLICA), found(encryption="customer"), Invalid("400")])
def test_not_eligible(answer: SourceObject | LakeMirrorError) -> None:
    assert cause(answer).cause == Cause.NOT_ELIGIBLE


def test_an_object_that_may_not_be_asked_for() -> None:
    assert cause(Denied("403")).cause == Cause.RIGHTS_MISSING
    assert cause(Unreachable("away")).cause == Cause.NOT_TOLD


def test_a_store_without_statuses_says_nothing() -> None:
    assert cause(found(), kind=StoreKind.OTHER).cause == Cause.NOT_TOLD
    verdict = cause(found(), kind=StoreKind.OTHER, rules=[])
    assert (verdict.cause, "if something else copies" in verdict.advice) == (Cause.NO_RULE, True)


@pytest.mark.parametrize(
    ("header", "status"),
    [("COMPLETE", Status.COMPLETED), ("COMPLETED", Status.COMPLETED), ("", Status.ABSENT), ("NEW", Status.ABSENT)],
)
def test_words_of_the_header(header: str, status: Status) -> None:
    assert status_of(header) is status


def test_people_read_words_and_the_guide_has_them_with_the_codes() -> None:
    guide = (Path(__file__).resolve().parents[3] / "docs/guide/troubleshooting.md").read_text()
    for one in Cause:
        assert f"| {one.words} (`{one}`) |" in guide
