"""The API's document tells of every call and answer, and can be read as a page."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.drainage import GENERATOR_STATS, reset_generator_stats
from rest_framework.views import APIView

from rbac.models import User
from tests.api import Api
from tests.documented import problems
from tests.golden import document as golden
from web import openapi

DOCUMENT = "/service/replication/v1/openapi.json"
METHODS = ("get", "post", "put", "patch", "delete")


def calls() -> list[tuple[str, str, dict[str, Any]]]:
    return [(method, path, call) for path, item in openapi.document()["paths"].items() for method, call in item.items()]


def api_views(resolver: Any = None, prefix: str = "/") -> list[tuple[str, type[APIView]]]:
    """Every view of the API and its address."""
    found: list[tuple[str, type[APIView]]] = []
    for pattern in (resolver or get_resolver()).url_patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            found += api_views(pattern, address)
        elif isinstance(pattern, URLPattern) and address.startswith(openapi.PREFIX):
            found.append((address, pattern.callback.cls))
    return found


@pytest.mark.parametrize(("address", "view"), api_views(), ids=lambda given: str(getattr(given, "__name__", given)))
def test_every_call_says_what_it_answers(address: str, view: type[APIView]) -> None:
    path = re.sub(r"<(\w+:)?(\w+)>", r"{\2}", address)
    for method in METHODS:
        if method in vars(view):
            call = openapi.document()["paths"][path].get(method)
            assert call, f"{method} {path} is not in the document: put @answers(...) above it"
            assert call.get("summary"), f"{method} {path} has no @answers(...)"
            assert {"400", "401", "403"} < set(call["responses"])


def test_nothing_in_the_document_was_guessed() -> None:
    reset_generator_stats()
    openapi.document.__wrapped__()
    assert not GENERATOR_STATS._warn_cache
    assert not GENERATOR_STATS._error_cache


def test_the_document_is_the_one_that_was_agreed() -> None:
    """Equal but for tags and descriptions; one that is meant to differ: tests/golden/document.py."""
    assert json.loads(golden.as_text(openapi.document())) == json.loads(golden.GOLDEN.read_text())


def test_each_call_belongs_to_one_part_of_the_api() -> None:
    told = {(method, path): call.get("tags") for method, path, call in calls()}
    assert [call for call, tags in told.items() if not tags or len(tags) != 1 or not tags[0].isidentifier()] == []


def test_summaries_tell_calls_apart() -> None:
    told = [call["operationId"] for _, _, call in calls()]
    assert len(told) == len(set(told))


def test_every_post_of_a_user_takes_an_idempotency_key() -> None:
    for method, path, call in calls():
        named = {one["name"] for one in call.get("parameters", ())}
        assert ("Idempotency-Key" in named) == (method == "post" and "/hooks/" not in path), path


def test_calls_are_by_access_key_and_hooks_by_their_secret() -> None:
    assert openapi.document()["components"]["securitySchemes"]["accessKey"]["scheme"] == "basic"
    for _, path, call in calls():
        assert call["security"] == [{"webhookSecret" if "/hooks/" in path else "accessKey": []}]


@pytest.mark.django_db
def test_the_document_is_for_everyone_who_is_signed_in(outsider: User) -> None:
    status, told = Api(outsider).call("GET", DOCUMENT)
    assert (status, told["openapi"]) == (200, "3.1.0")
    answer = Client().get(DOCUMENT)
    assert (answer.status_code, list(answer.json())) == (401, ["message"])


@pytest.mark.django_db
def test_an_answer_that_the_document_does_not_know_is_found(owner: User) -> None:
    client = Client()
    client.force_login(owner)
    answer = client.get("/service/replication/v1/repositories/lake/mirrors")
    path = "/service/replication/v1/repositories/lake/mirrors"
    assert list(problems("GET", path, answer)) == []
    answer.content = answer.content.replace(b'"results": ', b'"found": ').replace(b'"results":', b'"found":')
    assert any("results" in one for one in problems("GET", path, answer))
    answer.status_code = 418
    assert "418" in next(problems("GET", path, answer))


@pytest.mark.django_db
def test_the_api_answers_json_whatever_is_asked_for(owner: User) -> None:
    client = Client()
    client.force_login(owner)
    answer = client.get(f"{DOCUMENT}?format=xml", headers={"Accept": "text/csv"})
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")


@pytest.mark.django_db
def test_the_page_shows_every_call_and_shape_with_nothing_from_elsewhere(outsider: User) -> None:
    client = Client()
    client.force_login(outsider)
    page = client.get("/docs/api").content.decode()
    for _, path, call in calls():
        assert f'id="{call["operationId"]}"' in page
        assert path.removeprefix(openapi.PREFIX) in page
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) - {"main"} <= anchors
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert 'href="/docs/api" aria-current="page"' in page


@pytest.mark.django_db
def test_who_is_not_signed_in_is_sent_to_do_so() -> None:
    answer = Client().get("/docs/api")
    assert (answer.status_code, answer["Location"]) == (302, "/login/?next=/docs/api")
