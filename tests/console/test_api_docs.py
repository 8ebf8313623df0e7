"""docs/api.md names every call that there is, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.urls import URLPattern

from console import api_urls as of_all
from console.api_docs import GROUPS
from installations import api_urls as of_installations
from mirrors.api import urls as of_mirrors
from notifications import api_urls as of_notifications
from replication.api import urls as of_rules
from web.openapi import document

PAGE = (Path(__file__).resolve().parents[2] / "docs/api.md").read_text()
URLS = [
    *(*of_all.urlpatterns, *of_installations.urlpatterns, *of_notifications.urlpatterns),
    *(*of_mirrors.urlpatterns, *of_rules.urlpatterns),
]
METHODS = ("get", "post", "put", "patch", "delete")


def shape(address: str) -> str:
    """An address with every variable part alike."""
    return re.sub(r"<[^>]*>|\{[^}]*\}", "{}", address).strip("/")


def calls_of(patterns: list[Any], before: str = "") -> Iterator[tuple[str, str]]:
    for one in patterns:
        address = before + str(one.pattern)
        if not isinstance(one, URLPattern):
            yield from calls_of(one.url_patterns, address)
            continue
        view = getattr(one.callback, "cls", None)
        methods = [method for method in METHODS if method in vars(view)] if view else ["post"]
        yield from ((method.upper(), shape(address)) for method in methods)


def calls_told() -> Iterator[tuple[str, str]]:
    base = ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            base = "repositories/{}/mirrors/{}/" if line == "## Of one mirror" else ""
        if found := re.match(r"\| (GET|POST|PUT|PATCH|DELETE) ([^|]+) \|", line):
            yield from ((found[1], shape(base + address)) for address in re.findall(r"`([^`]+)`", found[2]))


def test_every_call_is_told_and_every_call_told_exists() -> None:
    told = list(calls_told())
    assert sorted(told) == sorted(set(calls_of(URLS)))


def test_each_tag_stands_below_a_heading_that_says_what_it_is() -> None:
    tags = {call["tags"][0] for item in document()["paths"].values() for call in item.values()}
    assert tags == {tag for tags_of in GROUPS.values() for tag in tags_of}
