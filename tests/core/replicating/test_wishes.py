"""What a rule may be wished to be."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import Invalid
from core.replicating import wishes


@pytest.mark.parametrize("name", ["a", "-", "logs-to-eu", "0" * 63])
def test_names_that_may_be(name: str) -> None:
    assert wishes.check_name(name) == name


@pytest.mark.parametrize("name", ["", "A", "a_b", "a" * 64, "a b", "a\n", "é", *sorted(wishes.RESERVED)])
def test_names_that_may_not(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        wishes.check_name(name)
    assert caught.value.field == "name"


def test_places_lose_the_slash_at_their_end_and_name_their_field() -> None:
    assert wishes.checked_places("s3://src/in/", ["s3://out/", "s3a://two//"]) == (
        "s3://src/in",
        ["s3://out", "s3://two"],
    )
    for source, targets, field in (
        ("src", ["s3://out"], "source.uri"),
        ("s3://src", ["s3://out", "out"], "targets.1.uri"),
        ("s3://src", [], "targets"),
        ("s3://src", ["s3://out"] * 9, "targets"),
    ):
        with pytest.raises(Invalid) as caught:
            wishes.checked_places(source, targets)
        assert caught.value.field == field


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"workers": None}, "targets.0.workers"),
        ({"workers": 0}, "targets.0.workers"),
        ({"workers": 1001}, "targets.0.workers"),
        ({"bytes_per_second": 0}, "targets.0.bytes_per_second"),
        ({"objects_per_second": 10**9 + 1}, "targets.0.objects_per_second"),
    ],
)
def test_limits_have_bounds(limits: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        wishes.check_limits(limits, "targets.0.")
    assert caught.value.field == field
    wishes.check_limits({"workers": 1000, "bytes_per_second": None, "objects_per_second": 1})


def test_how_places_lie_to_each_other_is_told() -> None:
    assert wishes.told_overlap("s3://a", "s3://a", "the source") == "s3://a is the source"
    assert wishes.told_overlap("s3://a/b", "s3://a", "the source") == "s3://a/b lies in the source"
    assert wishes.told_overlap("s3://a", "s3://a/b", "the source") == "s3://a holds the source"
