"""A life in one process with secrets that stand nowhere else; then everything that people or programs see is searched.

The installations answer with an error that repeats the request's headers, as a proxy for debugging may.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver

from deployment import config, spark_server
from deployment.config_sections import Encrypt, StoreCredentials
from deployment.wiring import check_jobs, export_jobs
from installations import refresh
from jobs.models import Duty
from lakemirror_site import logs
from lakemirror_site.urls import urlpatterns
from mirrors.models import Mirror, Repository
from mirrors.tasks import run_duty
from mirrors.transitions import duties
from rbac import services as rbac
from tests.cast import person
from tests.mirrors.harness import forget_installations
from web.openapi import document

pytestmark = pytest.mark.django_db(transaction=True)

SECRETS = {
    "the file's lakeFS key": "zq1-lakefs-of-the-file",
    "the file's store key": "zq2-store-of-the-file",
    "a store's session token": "zq3-token-of-the-file",
    "the key": "zq4-encrypt-key",
    "the webhook's": "zq5-webhook",
    "a password": "zq6-password-of-otto",
    "an access key's": "zq7-secret-of-an-access-key-that-is-long-enough",
    "an added lakeFS's": "zq8-lakefs-of-mars",
    "an added store's": "zq9-store-of-mars",
    "a channel's address": "zqa-path-of-a-channel",
    "what a channel signs with": "zqb-signing-secret-of-a-channel",
    "a store's of the file without a lakeFS": "zqc-store-of-the-file-alone",
    "an added store's without a lakeFS": "zqd-store-of-landing",
}
HOOK = SECRETS["the webhook's"]
KEY_SECRET = SECRETS["an access key's"]
API = "/service/replication/v1"


class Echo(BaseHTTPRequestHandler):
    """Refuses everything, and says what it was asked."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.dumps({"message": f"no: {self.path} {dict(self.headers)}"}).encode()
        self.send_response(500)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def told(echo: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[config.Config]:
    """A configuration of such secrets."""
    keys = StoreCredentials(
        "AKIAFILE",
        config.Secret(SECRETS["the file's store key"]),
        config.Secret(SECRETS["a store's session token"]),
    )
    alone = StoreCredentials("AKIAMODELS", config.Secret(SECRETS["a store's of the file without a lakeFS"]))
    base = config.from_file()
    settings = replace(
        base,
        regional_endpoint=echo,
        dst_endpoints={"eu-west-1": echo},
        serve_regions=("us-east-1", "eu-west-1"),
        stores={region: config.Store(region, echo, True, keys) for region in ("us-east-1", "eu-west-1")},
        replication_stores={"models": config.Store("models", echo, True, alone)},
        auth=config.Auth(Encrypt(config.Secret(SECRETS["the key"]))),
        source_lakefs_access_key_id="AKIAFILELAKE",
        source_lakefs_secret_access_key=config.Secret(SECRETS["the file's lakeFS key"]),
        hooks=config.Hooks({"us-east-1": config.Secret(HOOK)}),
    )
    monkeypatch.setattr(config, "from_file", lambda: settings)
    monkeypatch.setattr("adapters.lakefs.time.sleep", lambda seconds: None)
    forget_installations()
    with mock.patch("jobs.duties.async_task"):
        yield settings
    forget_installations()


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, as both formatters write it."""
    stream, root = io.StringIO(), logging.getLogger()
    handlers = [logging.StreamHandler(stream) for _ in range(2)]
    for handler, formatter in zip(handlers, (logs.TextFormatter(), logs.JsonFormatter()), strict=True):
        handler.setFormatter(formatter)
        root.addHandler(handler)
    before = root.level
    root.setLevel(logging.DEBUG)
    yield stream
    root.setLevel(before)
    for handler in handlers:
        root.removeHandler(handler)


def found_in(where: str, text: str, *but: str) -> list[str]:
    """Which secrets a text has, as they are or as they are sent."""
    known = {name: secret for name, secret in SECRETS.items() if secret not in but}
    sent = {"AKIAFILELAKE": "the file's lakeFS key", "AKIAMARS": "an added lakeFS's"}
    coded = {name: base64.b64encode(f"{key}:{SECRETS[name]}".encode()).decode() for key, name in sent.items()}
    looked = [*known.items(), *coded.items()]
    return [f"{where}: {name}" for name, secret in looked if secret in text]


def a_rule_between(source: str, target: str) -> dict[str, Any]:
    """The body of a rule."""
    to = {"region": target, "uri": "s3://other"}
    return {"name": f"{source}-{target}", "source": {"region": source, "uri": "s3://bucket"}, "targets": [to]}


def live(echo: str, olga: Client, program: Client) -> Iterator[tuple[str, HttpResponse]]:
    """What people and programs do with secrets, well and badly."""
    body = {
        "region": "mars-1",
        "lakefs_endpoint": echo,
        "lakefs_access_key_id": "AKIAMARS",
        "lakefs_secret_access_key": SECRETS["an added lakeFS's"],
        "store_endpoint": echo,
        "store_access_key_id": "AKIAMARSS3",
        "store_secret_access_key": SECRETS["an added store's"],
    }
    yield "a wrong form", olga.post("/installations/new/", body | {"lakefs_endpoint": "nowhere"})
    yield "a form", olga.post("/installations/new/", body, follow=True)
    landing = {
        "region": "landing",
        "store_endpoint": echo,
        "store_access_key_id": "AKIALANDING",
        "store_secret_access_key": SECRETS["an added store's without a lakeFS"],
    }
    typed = landing | {"store_access": "keys"}
    yield "a store's wrong form", olga.post("/installations/new/", typed | {"store_endpoint": "nowhere"})
    yield "a store's test", olga.post("/installations/new/", typed | {"test": "1", "namespace": "s3://bucket"})
    yield "a store's form", olga.post("/installations/new/", typed, follow=True)
    for path, given in (
        ("installations", body),
        ("installations", body | {"region": "x", "nonsense": SECRETS["an added store's"]}),
        ("installations", body | {"region": "x", "store_path_style": SECRETS["an added store's"]}),
        ("installations/mars-1/test", {"namespace": "s3://bucket/x"}),
        ("installations/eu-west-1/test", {"namespace": "s3://bucket/x"}),
        ("installations", landing | {"region": "x", "lakefs_secret_access_key": landing["store_secret_access_key"]}),
        ("installations/landing/test", {"namespace": "s3://bucket/x"}),
        ("installations/landing/test", {}),
        ("installations/models/test", {"namespace": "s3://bucket/x"}),
        ("rules/preflight", a_rule_between("landing", "models")),
        ("rules", a_rule_between("models", "landing")),
        ("repositories/lake/mirrors", {"name": "b", "region": "mars-1", "storage_namespace": "s3://x/y"}),
        ("repositories/lake/mirrors/preflight", {"name": "b", "region": "mars-1", "storage_namespace": "s3://x/y"}),
    ):
        headers = {"Idempotency-Key": f"{path}-{len(str(given))}"}
        yield path, program.post(f"{API}/{path}", given, content_type="application/json", headers=headers)
    channel = {
        "name": "pager",
        "url": echo + "/" + SECRETS["a channel's address"],
        "signing_secret": SECRETS["what a channel signs with"],
    }
    yield "a wrong channel", olga.post("/notifications/channels/new/", channel | {"name": "a b"})
    yield (
        "a channel",
        olga.post(
            "/notifications/channels/new/",
            channel | {"enabled": "on", "least_severity": "warning", "tell_again_seconds": "0"},
            follow=True,
        ),
    )
    yield "its test", olga.post("/notifications/channels/pager/test/", follow=True)
    for path, given in (
        ("channels", channel | {"name": "b", "url": channel["url"].replace("http", "ftp")}),
        ("channels", channel | {"name": "b", "nonsense": channel["url"]}),
        ("channels/pager/test", {}),
    ):
        yield path, program.post(f"{API}/{path}", given, content_type="application/json")
    put = {**body, "lakefs_access_key_id": "AKIAMARS2"}
    del put["region"]
    yield "PUT", program.put(f"{API}/installations/mars-1", put, content_type="application/json")
    yield "a webhook", Client().post("/hooks/lakefs/us-east-1", {}, headers={"Authorization": f"Bearer {HOOK}"})
    yield "a wrong one", Client().post("/hooks/lakefs/us-east-1", {}, headers={"Authorization": f"Bearer {HOOK}x"})
    yield "a test", olga.post("/installations/us-east-1/test/", {"namespace": "s3://b/c"}, follow=True)
    for name, password in (("otto", SECRETS["a password"]), ("olga", SECRETS["a password"])):
        yield "signing in", Client().post("/login/", {"username": name, "password": password})


def pages() -> Iterator[str]:
    """Every page without arguments, and those of what there is."""
    for one in urlpatterns:
        inner = one.url_patterns if isinstance(one, URLResolver) and str(one.pattern) == "" else [one]
        for page in inner:
            if isinstance(page, URLPattern):
                path = str(page.pattern)
                for name, value in {
                    "<str:name>": "lake-eu",
                    "<str:region>": "mars-1",
                    "<int:duty>": "1",
                    "<str:channel>": "pager",
                }.items():
                    path = path.replace(name, value)
                yield "/" + path.replace("<str:job>", "duty-1").replace("<", "%3C").replace(">", "%3E")
    yield from ("/installations/landing/", "/installations/landing/edit/", "/installations/models/")
    yield from ("/nix/", "/installations/us-east-1/", "/%00", "/jobs/?kind=x")


def calls() -> Iterator[str]:
    """Every GET of the API."""
    real = {"repository": "lake", "mirror_id": "lake-eu", "region": "mars-1", "job": "duty-1", "branch": "main"} | {
        "channel": "pager"
    }
    for path, methods in document()["paths"].items():
        if "get" in methods:
            for name in ("repository", "mirror_id", "region", "job", "branch", "commit", "number", "waiver", "channel"):
                path = path.replace("{" + name + "}", str(real.get(name, "1")))
            yield path


def database() -> str:
    """Everything that is stored."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        found = []
        for table in tables:
            cursor.execute(f'SELECT * FROM "{table}"')
            found += [f"{table}: {row}" for row in cursor.fetchall()]
    return "\n".join(found)


def test_no_secret_shows_anywhere(
    told: config.Config, echo: str, log: io.StringIO, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    olga_user, tom_user = person("olga", "Admins"), person("tom", "Viewers")
    otto = rbac.user_create(actor="system:tests", username="otto", password=SECRETS["a password"])
    rbac.key_create(actor="system:tests", user=olga_user, key_id="AKIAOLGA00000000", secret=KEY_SECRET)
    olga, tom = Client(raise_request_exception=False), Client(raise_request_exception=False)
    olga.force_login(olga_user)
    tom.force_login(tom_user)
    pair = base64.b64encode(f"AKIAOLGA00000000:{KEY_SECRET}".encode()).decode()
    program = Client(raise_request_exception=False, headers={"Authorization": f"Basic {pair}"})
    found: list[str] = []
    for what, answer in live(echo, olga, program):
        found += found_in(what, answer.content.decode())
    assert "mars-1" in config.current().regions and otto.pk

    mirror = a_mirror()
    for duty in Duty.objects.all():
        run_duty(duty.pk)
    assert Duty.objects.exclude(outcome="").exists()

    for who in (olga, tom):
        for address in [*pages(), *calls()]:
            answer = who.get(address)
            # Who may change a mirror is shown the file of its source's webhook, and its secret has to be in it.
            but = (HOOK,) if who is olga and address == "/mirrors/lake-eu/settings/" else ()
            found += found_in(address, b"".join(answer).decode() if answer.streaming else answer.content.decode(), *but)
            found += found_in(f"headers of {address}", str(dict(answer.headers)))
    with mock.patch("console.jobs.views.render", side_effect=KeyError(SECRETS["the key"])):
        broken = olga.get("/jobs/")
    assert broken.status_code == 500
    found += found_in("an error of ours", broken.content.decode())
    for address in ("/mirrors/x/sync/", "/installations/mars-1/delete/"):
        refused = Client(enforce_csrf_checks=True).post(address, {"x": SECRETS["an added store's"]})
        found += found_in(f"refused {address}", refused.content.decode())
    found += found_in("the database", database())
    found += found_in("Spark", handed_to_spark(told, mirror, monkeypatch))
    logging.getLogger("mirrors").warning("signed with %s", SECRETS["an added store's"])
    logging.getLogger("mirrors").exception("broke", exc_info=ValueError(SECRETS["the file's store key"]))
    assert "signed with ***" in log.getvalue()
    found += found_in("the log", log.getvalue())
    found += found_in("the output", "".join(capfd.readouterr()))
    assert found == []


def a_mirror() -> Mirror:
    """One whose source and destination only refuse."""
    source = Repository.objects.create(
        region="us-east-1", name="lake", storage_namespace="s3://src/lake", creation_date=1, default_branch="main"
    )
    mirror: Mirror = Mirror.objects.create(
        name="lake-eu", source=source, region="mars-1", storage_namespace="s3://dst/lake"
    )
    duties.ensure_mirror_duties(mirror)
    return mirror


def handed_to_spark(told: config.Config, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server's command and environment, and what stands in plans: as text, whatever it is packed in."""
    for name in ("REPLICATION_SOURCE_LAKEFS_SECRET_ACCESS_KEY", "source_lakefs_secret_access_key"):
        monkeypatch.setenv(name, SECRETS["the file's lakeFS key"])
    monkeypatch.setenv("REPLICATION_AUTH_ENCRYPT_SECRET_KEY", SECRETS["the key"])
    monkeypatch.setenv("LAKEMIRROR_ADMIN_PASSWORD", SECRETS["a password"])
    refresh.read()
    command, environment = spark_server.start(told, 8120, [])
    check = check_jobs.settings_of(mirror)
    export = export_jobs.settings(region="mars-1", namespace="s3://src/lake", path="s3://bucket/latest")
    assert check.access.sealed and export.destination.access.sealed
    packed = [pickle.dumps(one).decode("latin-1") for one in (check, export)]
    return "\n".join([str(command), str(environment), *packed, repr(check), repr(export)])


def test_the_search_finds_what_there_is() -> None:
    for name, secret in SECRETS.items():
        assert found_in("x", f"a {secret} b") == [f"x: {name}"]
