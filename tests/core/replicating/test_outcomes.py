"""What a store's answer means for an object, and for its link."""

from __future__ import annotations

import pytest

from core.bringing import Overwritten, Side, Unbrought
from core.errors import (
    Archived,
    Conflict,
    Corrupt,
    Denied,
    Full,
    Invalid,
    LakeMirrorError,
    NoBucket,
    NotFound,
    NotSent,
    RemoteFailure,
    Throttled,
    Unauthenticated,
    Unreachable,
)
from core.replicating.outcomes import Kind, of_error
from core.replicating.states import Code

SOURCE = [
    (Overwritten, Kind.CHANGED, Code.SOURCE_CHANGED),
    (NotFound, Kind.GONE, Code.NONE),
    (NoBucket, Kind.REFUSED, Code.SOURCE_BUCKET_NOT_FOUND),
    (Archived, Kind.SKIPPED, Code.SOURCE_ARCHIVED),
    (Denied, Kind.REFUSED, Code.SOURCE_DENIED),
    (Unauthenticated, Kind.REFUSED, Code.SOURCE_DENIED),
    (Invalid, Kind.SKIPPED, Code.CUSTOMER_KEY),
    (Unreachable, Kind.SILENT, Code.SOURCE_DOWN),
    (NotSent, Kind.SILENT, Code.SOURCE_DOWN),
    (RemoteFailure, Kind.RETRY, Code.SOURCE_FAILED),
    (Corrupt, Kind.FAILED, Code.SOURCE_REFUSED),
]
TARGET = [
    (NotFound, Kind.REFUSED, Code.TARGET_BUCKET_NOT_FOUND),
    (NoBucket, Kind.REFUSED, Code.TARGET_BUCKET_NOT_FOUND),
    (Denied, Kind.REFUSED, Code.TARGET_DENIED),
    (Full, Kind.REFUSED, Code.TARGET_FULL),
    (Unreachable, Kind.SILENT, Code.TARGET_DOWN),
    (RemoteFailure, Kind.RETRY, Code.TARGET_FAILED),
    (Invalid, Kind.FAILED, Code.TARGET_REFUSED),
    (Conflict, Kind.FAILED, Code.TARGET_REFUSED),
]


@pytest.mark.parametrize(
    ("side", "error", "kind", "code"),
    [*((Side.SOURCE, *row) for row in SOURCE), *((Side.DESTINATION, *row) for row in TARGET)],
)
def test_what_an_answer_means(side: Side, error: type[LakeMirrorError], kind: Kind, code: Code) -> None:
    outcome = of_error(Unbrought(side, error("as the store says")))
    assert (outcome.kind, outcome.code, outcome.message) == (kind, code, "as the store says")


def test_a_store_that_asks_for_patience_gets_it() -> None:
    outcome = of_error(Unbrought(Side.DESTINATION, Throttled("slow down", retry_after=30)))
    assert (outcome.kind, outcome.code, outcome.pause) == (Kind.RETRY, Code.TARGET_THROTTLED, 30)
