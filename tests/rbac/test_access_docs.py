"""docs/access.md names every call of the API of access, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from rbac.api.urls import urlpatterns

PAGE = (Path(__file__).resolve().parents[2] / "docs/access.md").read_text()
METHODS = ("get", "post", "put", "patch", "delete")


def shape(address: str) -> str:
    return re.sub(r"<[^>]*>|\{[^}]*\}", "{}", address).strip("/")


def test_every_call_is_told_and_every_call_told_exists() -> None:
    told = re.findall(r"^\| (GET|POST|PUT|PATCH|DELETE) `([^`]+)` \|", PAGE, re.MULTILINE)
    there = [
        (method.upper(), shape(str(one.pattern)))
        for one in urlpatterns
        for method in METHODS
        if method in vars(one.callback.cls)
    ]
    assert sorted((method, shape(address)) for method, address in told) == sorted(there)
