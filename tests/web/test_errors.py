"""Each error becomes its status and one message, for programs and for pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import path
from rest_framework import exceptions, serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core import errors
from core.errors import NotSignedIn
from graveler.errors import FormatError
from lakemirror_site.error_pages import ErrorPages
from lakemirror_site.urls import handler404
from lakemirror_site.urls import urlpatterns as site_patterns
from rbac.models import User
from web.errors import NO_CREDENTIALS

ARN = "arn:lakefs:fs:::repository/lake"
RAISED: list[Exception] = []


class Name(serializers.Serializer):
    name = serializers.CharField(max_length=3)


class Raise(APIView):
    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        raise RAISED[-1]

    def post(self, request: Request) -> Response:
        body = Name(data=request.data)
        body.is_valid(raise_exception=True)
        return Response(body.data)


class Who(APIView):
    """With the site's own authenticators."""

    def get(self, request: Request) -> Response:
        return Response({"user": request.user.username})

    post = get


def page(request: HttpRequest) -> HttpResponse:
    raise RAISED[-1]


urlpatterns = [
    path("service/raise", Raise.as_view()),
    path("service/who", Who.as_view()),
    path("page", page),
    *site_patterns,
]
handler404 = handler404
pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db]

EXPECTED = [
    (errors.Invalid("no such place", field="region"), 400, "region: no such place"),
    (errors.Invalid("bad name", field="name"), 400, "bad name"),
    (NotSignedIn("sign in"), 401, "sign in"),
    (errors.Denied("may not x", action="x", arn=ARN, hint="Ask"), 403, "may not x. Ask"),
    (errors.Denied("the installation refused"), 502, "the installation refused"),
    (errors.Archived("it is in an archive"), 502, "it is in an archive"),
    (errors.Unversioned("it keeps no versions"), 502, "it keeps no versions"),
    (errors.Unauthenticated("wrong credentials for eu-west-1"), 502, "wrong credentials for eu-west-1"),
    (errors.NotFound("there is no mirror 'x'"), 404, "there is no mirror 'x'"),
    (errors.Conflict("taken"), 409, "taken"),
    (errors.Fenced("lease lost"), 409, "lease lost"),
    (errors.Unreachable("no answer"), 503, "no answer"),
    (errors.NotSent("no connection"), 503, "no connection"),
    (errors.Throttled("slow down", retry_after=1.2), 503, "slow down"),
    (errors.NoData("not here yet"), 503, "not here yet"),
    (errors.RemoteFailure("answered 500"), 502, "answered 500"),
    (errors.Corrupt("wrong id"), 502, "wrong id"),
    (FormatError("r1", 4, "a footer"), 502, "r1: at byte 4: expected a footer"),
    (exceptions.NotFound(), 404, "Not found."),
    (exceptions.Throttled(wait=3), 429, "Request was throttled. Expected available in 3 seconds."),
    (Http404("x"), 404, "x"),
]


@pytest.mark.parametrize(("exc", "status", "message"), EXPECTED, ids=lambda value: type(value).__name__)
def test_the_api_answers_with_the_status_and_one_message(
    client: Client, exc: Exception, status: int, message: str
) -> None:
    RAISED.append(exc)
    response = client.get("/service/raise")
    field = {"field": exc.field} if getattr(exc, "field", "") else {}
    assert (response.status_code, response.json()) == (status, {"message": message} | field)


@pytest.mark.parametrize(
    ("exc", "status"),
    [(exc, status) for exc, status, _ in EXPECTED[3:16] if status != 404],
    ids=lambda value: type(value).__name__,
)
def test_pages_answer_with_the_same_status_and_say_why(client: Client, exc: Exception, status: int) -> None:
    RAISED.append(exc)
    response = client.get("/page", headers={"Accept": "text/html"})
    assert response.status_code == status
    assert str(exc).lower() in response.content.decode().lower()


def test_every_error_of_the_core_has_its_own_line() -> None:
    from web.errors import STATUSES

    listed = {kind for kind, _ in STATUSES} | {errors.Denied}
    known = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert known - {errors.LakeMirrorError} <= listed


def test_headers_say_how_to_sign_in_and_when_to_return(client: Client) -> None:
    RAISED.append(NotSignedIn("x"))
    assert client.get("/service/raise")["WWW-Authenticate"].startswith("Basic")
    RAISED.append(errors.Throttled("x", retry_after=1.2))
    assert client.get("/service/raise")["Retry-After"] == "2"


def test_a_403_page_names_action_and_arn(client: Client) -> None:
    RAISED.append(errors.Denied("otto may not x", action="fs:X", arn=ARN))
    html = client.get("/page").content.decode()
    assert "fs:X" in html
    assert ARN in html


def test_what_nobody_expected_tells_the_caller_nothing(client: Client, caplog: Any) -> None:
    RAISED.append(ZeroDivisionError("secret detail"))
    response = client.get("/service/raise")
    assert response.status_code == 500
    assert "secret" not in response.content.decode()
    assert "ZeroDivisionError" in caplog.text


def test_a_stranger_is_sent_to_sign_in_and_back(client: Client) -> None:
    RAISED.append(NotSignedIn("x"))
    response = client.get("/page?a=1")
    assert response["Location"] == "/login/?next=/page%3Fa%3D1"


def test_a_strangers_fragment_sends_the_whole_page_to_sign_in(client: Client) -> None:
    RAISED.append(NotSignedIn("x"))
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/mirrors/?b=2"}
    response = client.get("/page", headers=headers)
    assert (response.status_code, response["HX-Redirect"]) == (401, "/login/?next=/mirrors/%3Fb%3D2")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "JSON parse error"),
        ("[]", "Invalid data. Expected a dictionary"),
        ("{}", "name: This field is required."),
        ('{"name": "long"}', "name: Ensure this field has no more than 3 characters."),
    ],
)
def test_a_body_that_is_wrong_is_a_400_that_names_the_field(client: Client, body: str, message: str) -> None:
    response = client.post("/service/raise", body, content_type="application/json")
    assert response.status_code == 400
    assert response.json()["message"].startswith(message)


def test_a_body_of_two_megabytes_is_refused_unread(client: Client) -> None:
    body = '{"name": "' + "x" * 2_000_000 + '"}'
    response = client.post("/service/raise", body, content_type="application/json")
    assert response.status_code == 413
    assert response.json()["message"].startswith("the body is larger than")


def test_an_unknown_address_is_json_for_programs_and_a_page_for_people(client: Client) -> None:
    assert client.get("/service/nothing").json() == {"message": "there is nothing at this address"}
    assert b"<h1>" in client.get("/nothing").content


def test_a_page_without_templates_is_still_an_answer(settings: Any) -> None:
    settings.TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates"}]
    answer = ErrorPages(page).process_exception(RequestFactory().get("/x"), errors.Conflict("<b>taken</b>"))
    assert answer is not None
    assert b"&lt;b&gt;taken" in answer.content


def test_a_session_reads_the_api_and_writes_only_with_the_pages_token(teammate: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(teammate)
    assert strict.get("/service/who").json() == {"user": "tom"}
    refused = strict.post("/service/who")
    assert refused.status_code == 403
    assert refused.json()["message"].startswith("CSRF")


def test_without_a_session_or_a_key_the_api_asks_for_one(client: Client) -> None:
    response = client.get("/service/who")
    assert (response.status_code, list(response.json())) == (401, ["message"])
    assert response["WWW-Authenticate"].startswith("Basic")


@pytest.mark.django_db
def test_a_call_without_a_key_is_told_how_to_send_one(client: Client) -> None:
    answer = client.get("/service/replication/v1/mirrors")
    assert (answer.status_code, answer.json()) == (401, {"message": NO_CREDENTIALS})
    assert answer["WWW-Authenticate"].startswith("Basic")
