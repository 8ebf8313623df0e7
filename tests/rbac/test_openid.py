"""Signing in with an OpenID provider: only by an answer to one's own question, signed, for us, and in time."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from joserfc import jwt
from joserfc.jwk import RSAKey

from audit.models import AuditEvent
from deployment import config
from rbac import services
from rbac.models import Session, User
from rbac.signin import openid
from tests.deployment.test_config import changed

pytestmark = pytest.mark.django_db

KEY = RSAKey.generate_key(2048, {"kid": "one"})


class Provider:
    """A small provider: people are whoever `claims` says; a code is good once, for who knows its verifier."""

    def __init__(self) -> None:
        self.claims: dict[str, Any] = {"preferred_username": "tom"}
        self.key, self.codes = KEY, dict[str, dict[str, str]]()
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.give(200, told.keys() if self.path == "/jwks" else told.metadata())

            def do_POST(self) -> None:
                assert self.headers["Authorization"] == "Basic " + base64.b64encode(b"lakemirror:s").decode()
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self.give(*told.token({name: value for name, (value,) in parse_qs(body).items()}))

            def give(self, status: int, body: Any) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def keys(self) -> dict[str, Any]:
        return {"keys": [KEY.as_dict(private=False)]}

    def authorize(self, address: str) -> str:
        """Somebody agrees there; where they are sent to."""
        asked = {name: value for name, (value,) in parse_qs(urlsplit(address).query).items()}
        assert asked["code_challenge_method"] == "S256"
        self.codes[f"code{len(self.codes)}"] = asked
        return f"{asked['redirect_uri']}?code=code{len(self.codes) - 1}&state={asked['state']}"

    def token(self, body: dict[str, str]) -> tuple[int, Any]:
        asked = self.codes.pop(body["code"], None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(body["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if asked is None or proof != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": "lakemirror",
            "sub": "7",
            "iat": now,
            "exp": now + 60,
            "nonce": asked["nonce"],
        }
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims | self.claims, self.key)
        return 200, {"access_token": "at", "token_type": "Bearer", "id_token": signed}


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def tell(provider: Provider) -> Iterator[Callable[..., None]]:
    """Make this process one that knows the provider."""
    with pytest.MonkeyPatch.context() as patch:

        def told(**more: Any) -> None:
            fields = {"issuer": provider.url, "client_id": "lakemirror", "client_secret": "s", "name": "Example"} | more
            data = changed("auth.openid", fields)
            patch.setattr(config, "current", lambda: config.parse(data))
            openid._provider.cache_clear()

        told()
        yield told
    openid._provider.cache_clear()


def go(client: Client, provider: Provider, then: str = "") -> Any:
    """From the button to the provider and back; what the last step answers."""
    away = client.post("/login/openid/", {"next": then})
    assert away["Location"].startswith(f"{provider.url}/authorize?")
    return client.get(provider.authorize(away["Location"]))


def refusal(client: Client, answer: Any) -> str:
    """Why nobody was signed in, as the sign-in page says it."""
    assert answer["Location"] == "/login/"
    assert "_auth_user_id" not in client.session
    return str(client.get("/login/").content.decode().partition("Not signed in: ")[2].partition("</p>")[0])


def test_a_user_signs_in_by_the_provider_with_a_new_session(
    client: Client, provider: Provider, tell: Callable[..., None], teammate: User
) -> None:
    page = client.get("/login/")
    assert "Sign in with Example" in page.content.decode()
    assert "form-action 'self' http:" in page["Content-Security-Policy"], "browsers would not follow the form there"
    away = client.post("/login/openid/", {"next": "/jobs/"})
    assert "client_id=lakemirror&" in away["Location"]
    assert "scope=openid+profile+email" in away["Location"]
    before = client.cookies["lakemirror_session"].value
    back = client.get(provider.authorize(away["Location"]))
    assert back["Location"] == "/jobs/"
    assert client.session["_auth_user_id"] == str(teammate.pk)
    assert client.cookies["lakemirror_session"].value != before
    assert Session.objects.get().user == teammate
    assert go(Client(), provider, "https://evil.example/")["Location"] == "/"


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"iss": "https://evil.example"},
        {"nonce": "another"},
        {"exp": 1},
        {"preferred_username": None},
        {"preferred_username": "no name: of ours"},
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_what_is_not_said_to_us_now_signs_nobody_in(
    client: Client, provider: Provider, tell: Callable[..., None], teammate: User, claims: dict[str, Any]
) -> None:
    provider.claims |= claims
    assert refusal(client, go(client, provider))


def test_a_strange_signature_state_or_code_signs_nobody_in(
    client: Client, provider: Provider, tell: Callable[..., None], teammate: User
) -> None:
    provider.key = RSAKey.generate_key(2048, {"kid": "one"})
    assert "signing in there failed" in refusal(client, go(client, provider))
    provider.key = KEY
    link = provider.authorize(client.post("/login/openid/")["Location"])
    assert "signing in there failed" in refusal(client, client.get(link.partition("&state")[0] + "&state=x"))
    other = Client()
    assert "signing in there failed" in refusal(other, other.get(link))
    assert "signing in there failed" in refusal(client, client.get("/login/openid/return/?error=access_denied"))
    assert client.get(link)["Location"] == "/"
    again = Client()
    again.cookies = client.cookies
    again.post("/logout/")
    assert "signing in there failed" in refusal(again, again.get(link))


def test_who_is_unknown_here_is_made_only_if_so_configured(
    client: Client, provider: Provider, tell: Callable[..., None], teammate: User, owner: User
) -> None:
    provider.claims = {"preferred_username": "new", "email": "new@example.com", "email_verified": True}
    assert "there is no user" in refusal(client, go(client, provider))
    tell(create_users=True, claim="email")
    go(client, provider)
    user = User.objects.get(username="new@example.com")
    assert (user.email, user.has_usable_password()) == ("new@example.com", False)
    assert AuditEvent.objects.get(arn=user.arn, action="auth:CreateUser").actor == "system:openid"
    assert client.get("/mirrors/").status_code == 403
    assert "You have no password here" in client.get("/account/password/").content.decode()
    services.user_set_active(actor=owner, user=user, active=False)
    fresh = Client()
    assert "may not sign in" in refusal(fresh, go(fresh, provider))


def test_without_a_provider_or_when_it_is_down_the_password_is_left(
    client: Client, provider: Provider, tell: Callable[..., None], teammate: User
) -> None:
    tell(issuer="http://127.0.0.1:9")
    assert "signing in there failed" in refusal(client, client.post("/login/openid/"))
    assert client.get("/login/openid/").status_code == 405
    assert Client(enforce_csrf_checks=True).post("/login/openid/").status_code == 403
    tell(issuer="")
    assert "form-action 'self';" in f"{client.get('/login/')['Content-Security-Policy']};"
    assert "Example" not in client.get("/login/").content.decode()
    assert client.post("/login/openid/").status_code == 404
    assert client.get("/login/openid/return/").status_code == 404
