"""Whether files of an export leave a region, by what is known of both stores."""

from __future__ import annotations

import pytest

from core.exporting.preflight import check_region
from core.exporting.route import Route
from core.installations.preflight import CheckOutcome


def route(bucket_region: str = "eu", *, within: bool = False, workers: str = "eu") -> Route:
    return Route("eu", "company", bucket_region, within, workers)


@pytest.mark.parametrize(
    ("way", "crosses", "words"),
    [
        (
            route(within=True),
            False,
            "The repository and the bucket company are in eu: the store copies the files",
        ),
        (route(within=True, workers="us"), False, "the store copies the files itself."),
        (route("us"), True, "The repository is in eu, the bucket company in us: every file goes from one region to"),
        (route("us", within=True), True, "Stores usually charge for that."),
        (route(), False, "in eu: every file passes through LakeMirror."),
        (route(workers="us"), True, "every file passes through LakeMirror in us. Stores usually charge for that."),
        (route(""), None, "the bucket company in another store: every file passes through LakeMirror."),
        (route("", workers="us"), True, "in another store: every file passes through LakeMirror in us. Stores"),
    ],
)
def test_what_leaves_a_region_is_told(way: Route, crosses: bool | None, words: str) -> None:
    assert way.crosses is crosses
    assert words in way.sentence


def test_the_form_warns_of_it() -> None:
    warned = check_region("path", route("us"))
    assert (warned.id, warned.state, warned.fix) == (
        "path-region",
        CheckOutcome.WARNING,
        "Choose a bucket in eu to avoid it",
    )
    assert check_region("path", route("")).state is CheckOutcome.UNKNOWN
    assert check_region("path", route(within=True)).state is CheckOutcome.OK
