"""Which alerts a channel hears of."""

from __future__ import annotations

import pytest

from core.notifications.rules import Rule


def hears(
    rule: Rule, kind: str = "mirror-late", severity: str = "warning", name: str = "lake-eu", region: str = "eu-1"
) -> bool:
    return rule.hears(kind, severity, name=name, region=region)


def test_as_it_is_made_it_hears_of_everything() -> None:
    assert hears(Rule()) and hears(Rule(), "region-down", "error", "", "")


@pytest.mark.parametrize(("severity", "heard"), [("warning", False), ("error", True), ("critical", True)])
def test_what_is_milder_is_left_out(severity: str, heard: bool) -> None:
    assert hears(Rule(least_severity="error"), severity=severity) is heard


def test_kinds_are_chosen() -> None:
    assert hears(Rule(kinds=["mirror-late"])) and not hears(Rule(kinds=["mirror-damaged"]))


@pytest.mark.parametrize(
    ("pattern", "heard"), [("lake-*", True), ("lake-e?", True), ("lake", False), ("*eu", True), ("LAKE-*", False)]
)
def test_names_fit_patterns(pattern: str, heard: bool) -> None:
    assert hears(Rule(names=["other", pattern])) is heard


def test_what_has_no_name_or_region_is_not_left_out_by_one() -> None:
    assert hears(Rule(names=["x"], regions=["eu-*"]), "queue-silent", "error", name="", region="")
    assert not hears(Rule(regions=["us-*"]))


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (Rule(least_severity="loud"), "least_severity"),
        (Rule(kinds=["nonsense"]), "kinds"),
        (Rule(names=[""]), "names"),
        (Rule(regions=["x" * 201]), "regions"),
        (Rule(names=["x"] * 101), "names"),
        (Rule(tell_again_seconds=7), "tell_again_seconds"),
        (Rule(), ""),
    ],
)
def test_what_can_not_be_is_named(rule: Rule, field: str) -> None:
    assert rule.problem()[0] == field
