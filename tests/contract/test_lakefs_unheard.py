"""A record whose answer got lost may have been made by that very call: that it is there now tells nothing of before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import lakefs_sdk.exceptions as sdk_errors
import pytest
import urllib3

from adapters import lakefs
from adapters.lakefs import LakeFSAdapter
from core.errors import NotSent, Unreachable
from core.types import Commit, RecordOutcome

RECORD = Commit(
    id="a" * 64,
    parents=(),
    committer="c",
    message="m",
    creation_date=1,
    metarange_id="",
    metadata={},
    generation=1,
    version=1,
)


def sent(*answers: Exception | None) -> RecordOutcome:
    """What the adapter makes of these answers to its calls, one after the other."""
    client = LakeFSAdapter("http://localhost:1", "key", "secret")
    creating: Callable[..., Any] = mock.Mock(side_effect=answers)
    with (
        mock.patch.object(client._internal, "create_commit_record", creating),
        mock.patch.object(lakefs.time, "sleep"),
    ):
        return client.put_commit_record("lake-eu", RECORD)


def exists() -> Exception:
    error = sdk_errors.ApiException(status=409, reason="Conflict")
    error.body = '{"message": "commit already exists"}'
    return error


LOST = urllib3.exceptions.ReadTimeoutError(None, "/", "the answer was lost")  # type: ignore[arg-type]
AWAY = urllib3.exceptions.NewConnectionError(None, "refused")  # type: ignore[arg-type]


def test_150_a_record_that_is_there_after_a_lost_answer_may_have_been_lost_before() -> None:
    with pytest.raises(Unreachable):
        sent(LOST, exists())


def test_it_was_there_if_no_call_before_was_carried_out() -> None:
    assert sent(exists()) is RecordOutcome.EXISTS
    assert sent(AWAY, exists()) is RecordOutcome.EXISTS
    assert sent(sdk_errors.ApiException(status=429, reason="slow down"), exists()) is RecordOutcome.EXISTS


def test_it_was_not_there_if_a_later_call_makes_it() -> None:
    assert sent(LOST, None) is RecordOutcome.CREATED


def test_who_gets_no_connection_has_sent_nothing() -> None:
    with pytest.raises(NotSent):
        sent(*[AWAY] * 9)
