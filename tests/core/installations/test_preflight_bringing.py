"""What a preflight says of a mirror whose objects LakeMirror is to copy."""

from __future__ import annotations

import pytest

from core.errors import Denied, LakeMirrorError, NotFound, Unreachable
from core.installations.preflight import CheckOutcome
from core.installations.preflight_bringing import NOT_TRIED, check_double_work, check_writable
from core.types import ReplicationRule

PLACE = "s3://dst/lake"


def test_who_may_start_an_upload_and_cancel_it_may_write() -> None:
    check = check_writable(PLACE, {"s3:PutObject": None, "s3:AbortMultipartUpload": None})
    assert (check.state, check.fix) == (CheckOutcome.OK, "")


@pytest.mark.parametrize("action", ["s3:PutObject", "s3:AbortMultipartUpload"])
def test_the_action_that_is_refused_is_named_with_its_resource(action: str) -> None:
    check = check_writable(PLACE, {action: Denied("403 AccessDenied")})
    assert check.state is CheckOutcome.FAILED
    assert check.fix == f"Grant the store's key {action} on arn:aws:s3:::dst/lake/*"


def test_a_bucket_that_is_not_there_is_to_be_created() -> None:
    check = check_writable(PLACE, {"s3:PutObject": NotFound("404 NoSuchBucket")})
    assert (check.state, check.fix) == (CheckOutcome.FAILED, "Create the bucket dst")


@pytest.mark.parametrize("error", [NOT_TRIED, Unreachable("no answer")])
def test_what_was_not_tried_is_not_known(error: LakeMirrorError) -> None:
    assert check_writable(PLACE, error).state is CheckOutcome.UNKNOWN


def test_a_rule_that_copies_the_same_objects_is_double_work() -> None:
    rules = [ReplicationRule("all", True, "", "dst")]
    assert check_double_work("s3://src/lake", PLACE, rules).state is CheckOutcome.WARNING
    assert check_double_work("s3://src/lake", "s3://dst/other", rules).state is CheckOutcome.OK
    assert check_double_work("s3://src/lake", PLACE, []).state is CheckOutcome.OK


def test_a_rule_for_a_part_of_the_namespace_is_double_work_too() -> None:
    rules = [ReplicationRule("objects", True, "lake/data/", "dst")]
    check = check_double_work("s3://src/lake", PLACE, rules)
    assert (check.state, "'objects' of src" in check.message) == (CheckOutcome.WARNING, True)
    for other in (
        ReplicationRule("x", True, "lake/data/", "ap"),
        ReplicationRule("x", True, "lake/", "dst", tagged=True),
    ):
        assert check_double_work("s3://src/lake", PLACE, [other]).state is CheckOutcome.OK
