"""A POST with an Idempotency-Key is carried out once, however often and however close together it comes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.http import HttpResponse
from django.test import Client
from rest_framework.response import Response

from audit.models import AuditEvent
from core.errors import Unreachable
from jobs.management.commands import controller
from mirrors.api import mirrors as api
from mirrors.models import Mirror
from mirrors.services import mirrors as services
from rbac.models import KeyedCall, User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.harness import Deployment, deployment

pytestmark = pytest.mark.django_db(transaction=True)
SYNC = f"{MIRRORS}/lake-eu/sync"


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


@pytest.fixture
def olga(owner: User, lm: Deployment) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def post(client: Client, path: str, body: Any = None, key: str | None = "first") -> HttpResponse:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(path, body or {}, content_type="application/json", headers=headers)


def test_the_same_request_again_gets_the_same_answer_and_does_nothing(olga: Client) -> None:
    first, again = post(olga, MIRRORS, BODY), post(olga, MIRRORS, BODY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert (first.get("Idempotency-Replayed"), again["Idempotency-Replayed"]) == (None, "true")
    assert AuditEvent.objects.filter(action="fs:MirrorRepository").count() == 1
    assert post(olga, MIRRORS, BODY, key=None).status_code == 409
    assert post(olga, MIRRORS, BODY, key="second").status_code == 409


def test_by_access_key_too(owner: User, lm: Deployment) -> None:
    program = Api(owner)
    program.headers["Idempotency-Key"] = "first"
    first = program.call("POST", MIRRORS, BODY)
    assert first[0] == 201
    assert program.call("POST", MIRRORS, BODY) == first


def test_a_refusal_is_kept_as_well(olga: Client, lm: Deployment) -> None:
    assert post(olga, SYNC).status_code == 404
    lm.add_mirror()
    assert post(olga, SYNC).status_code == 404
    assert post(olga, SYNC, key="second").status_code == 202


@pytest.mark.parametrize(
    ("path", "body"),
    [(MIRRORS, BODY | {"name": "other"}), (f"{MIRRORS}?a=b", BODY), (f"{MIRRORS}/lake-eu/pause", BODY)],
)
def test_a_key_is_for_one_request_only(olga: Client, path: str, body: dict[str, Any]) -> None:
    post(olga, MIRRORS, BODY)
    answer = post(olga, path, body)
    assert answer.status_code == 422
    assert "Idempotency-Key" in answer.json()["message"]
    assert Mirror.objects.count() == 1


def test_people_do_not_share_keys(olga: Client, lm: Deployment, teammate: User) -> None:
    lm.add_mirror()
    assert post(olga, SYNC).status_code == 202
    tom = Client()
    tom.force_login(teammate)
    assert post(tom, SYNC).status_code == 403


def test_nobody_gets_an_answer_by_a_key_alone(olga: Client) -> None:
    post(olga, MIRRORS, BODY)
    assert post(Client(), MIRRORS, BODY).status_code == 401
    wrong = {"Idempotency-Key": "first", "Authorization": "Basic bm9ib2R5Ondyb25n"}
    assert Client().post(MIRRORS, BODY, content_type="application/json", headers=wrong).status_code == 401
    User.objects.update(is_active=False)
    assert post(olga, MIRRORS, BODY).status_code in (401, 403)


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "schlüssel", "a\tb"])
def test_a_bad_key_is_told_so(olga: Client, key: str) -> None:
    answer = post(olga, MIRRORS, BODY, key=key)
    assert answer.status_code == 400
    assert "Idempotency-Key" in answer.json()["message"]
    assert not Mirror.objects.exists()


@pytest.mark.parametrize("key", ["x" * 255, "2026-11-21T20:32:12Z", '"quoted"'])
def test_a_good_one_is_taken(olga: Client, key: str) -> None:
    assert post(olga, MIRRORS, BODY, key=key).status_code == 201


def test_what_failed_is_tried_again_with_the_same_key(olga: Client, lm: Deployment) -> None:
    lm.us.failing["get_repository"] = Unreachable("no answer within 15 s")
    assert post(olga, MIRRORS, BODY).status_code == 503
    lm.us.failing.clear()
    assert post(olga, MIRRORS, BODY).status_code == 201


def test_of_two_at_the_same_time_one_is_carried_out(
    owner: User, lm: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm.add_mirror()
    begun, go_on, done = threading.Event(), threading.Event(), []

    def sync_slowly(**given: Any) -> None:
        begun.set()
        assert go_on.wait(20)
        done.append(given)

    def call() -> int:
        try:
            client = Client()
            client.force_login(owner)
            return post(client, SYNC).status_code
        finally:
            connection.close()

    monkeypatch.setattr(services, "mirror_sync", sync_slowly)
    with ThreadPoolExecutor(5) as threads:
        first = threads.submit(call)
        assert begun.wait(20)
        others = [threads.submit(call) for _ in range(4)]
        try:
            assert [other.result(20) for other in others] == [409] * 4
        finally:
            go_on.set()
        assert first.result(20) == 202
        assert threads.submit(call).result(20) == 202
    assert len(done) == 1


def test_a_request_that_died_is_not_done_again_by_itself(olga: Client, lm: Deployment) -> None:
    lm.add_mirror()
    post(olga, SYNC)
    KeyedCall.objects.update(status=None, answer=None)
    answer = post(olga, SYNC)
    assert (answer.status_code, answer["Retry-After"]) == (409, "1")
    assert "in progress since 20" in answer.json()["message"]


def test_after_a_day_a_key_means_nothing(olga: Client, lm: Deployment) -> None:
    lm.add_mirror()
    post(olga, SYNC)
    KeyedCall.objects.update(begun_at=Now() - timedelta(hours=23))
    controller.look_round()
    assert post(olga, SYNC)["Idempotency-Replayed"] == "true"
    KeyedCall.objects.update(begun_at=Now() - timedelta(hours=25))
    assert "Idempotency-Replayed" not in post(olga, SYNC)
    KeyedCall.objects.update(begun_at=Now() - timedelta(hours=25))
    controller.look_round()
    assert not KeyedCall.objects.exists()


def test_an_answer_with_a_secret_is_not_kept(olga: Client, lm: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer_once(*given: Any, **more: Any) -> Response:
        return Response({"message": "the secret", "job": None}, status=202, headers={"Cache-Control": "no-store"})

    monkeypatch.setattr(api.Sync, "post", answer_once)
    assert post(olga, SYNC).status_code == 202
    again = post(olga, SYNC)
    assert (again.status_code, "secret and is not stored" in again.json()["message"]) == (409, True)
    assert not KeyedCall.objects.exclude(answer=None).exists()


def test_only_posts_of_the_api_take_keys(olga: Client, lm: Deployment) -> None:
    lm.add_mirror()
    for _ in range(2):
        olga.get(MIRRORS, headers={"Idempotency-Key": "first"})
        olga.patch(f"{MIRRORS}/lake-eu", {"tags": True}, "application/json", headers={"Idempotency-Key": "first"})
        olga.post("/mirrors/lake-eu/sync/", headers={"Idempotency-Key": "first"})
    assert not KeyedCall.objects.exists()


def test_a_body_that_is_too_long_is_refused_as_ever(olga: Client) -> None:
    assert post(olga, MIRRORS, BODY | {"name": "x" * 1_100_000}).status_code == 413
    assert not KeyedCall.objects.exists()
