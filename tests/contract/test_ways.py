"""Ways to an installation beside its address and keys: a role by STS, a profile, a proxy, a CA bundle."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from adapters.lakefs import LakeFSAdapter
from adapters.s3.fast_store import FastObjectStore
from adapters.s3.store import S3ObjectStore
from core.errors import Denied, Invalid, LakeMirrorError
from core.store_access import StoreAccess

KEYS = {"access_key_id": "AKIAOWN", "secret_access_key": "own"}
ROLE = "arn:aws:iam::123456789012:role/mirror"
ASSUMED = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>temporary</SecretAccessKey><SessionToken>the-token</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""
LISTING = """<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated>
</ListBucketResult>"""
REFUSED = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>"


class Server:
    """Both STS and S3: what it was asked, as (path or body, Authorization, session token)."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.refuses = False
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._answer(body, REFUSED if server.refuses else ASSUMED, 403 if server.refuses else 200)

            def do_GET(self) -> None:
                self._answer(self.path, LISTING, 200)

            def _answer(self, what: str, text: str, status: int) -> None:
                headers = self.headers
                server.asked.append((what, headers.get("Authorization", ""), headers.get("X-Amz-Security-Token", "")))
                self.send_response(status)
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join()


@pytest.mark.parametrize("kind", [S3ObjectStore, FastObjectStore])
def test_a_role_is_assumed_once_with_the_keys_and_signs(kind: type[S3ObjectStore], server: Server) -> None:
    access = StoreAccess(role_arn=ROLE, role_external_id="42", sts_endpoint=server.url)
    store = kind(endpoint=server.url, force_path_style=True, access=access, **KEYS)  # type: ignore[arg-type]
    assert [*store.list("s3://bucket/a"), *store.list("s3://bucket/b")] == []
    assume, first, second = server.asked
    assert "Credential=AKIAOWN/" in assume[1] and "ExternalId=42" in assume[0] and "role%2Fmirror" in assume[0]
    for path, signed, token in (first, second):
        assert path.startswith("/bucket") and "Credential=ASIAROLE/" in signed and token == "the-token"


@pytest.mark.parametrize("kind", [S3ObjectStore, FastObjectStore])
def test_a_role_that_is_refused_is_told_without_a_secret(kind: type[S3ObjectStore], server: Server) -> None:
    server.refuses = True
    access = StoreAccess(role_arn=ROLE, sts_endpoint=server.url)
    store = kind(endpoint=server.url, force_path_style=True, access=access, tries=1, **KEYS)  # type: ignore[arg-type]
    with pytest.raises(Denied, match="not you") as caught:
        list(store.list("s3://bucket/a"))
    assert "own" not in str(caught.value).split()


@pytest.mark.parametrize("kind", [S3ObjectStore, FastObjectStore])
def test_a_store_and_a_lakefs_are_asked_through_the_proxy(kind: type[S3ObjectStore], server: Server) -> None:
    access = StoreAccess(proxy=server.url)
    store = kind(endpoint="http://s3.mars", force_path_style=True, access=access, **KEYS)  # type: ignore[arg-type]
    assert list(store.list("s3://bucket/a")) == []
    with pytest.raises(LakeMirrorError):
        LakeFSAdapter("http://lakefs.mars", "A", "b", proxy=server.url, tries=1).get_repository("lake")
    paths = [path for path, _, _ in server.asked]
    assert paths[0].startswith("http://s3.mars/bucket") and paths[1] == "http://lakefs.mars/api/v1/repositories/lake"


def test_a_profile_is_read_and_one_that_is_not_there_is_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[profile mars]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    store = FastObjectStore(endpoint=server.url, force_path_style=True, access=StoreAccess(profile="mars"))
    assert list(store.list("s3://bucket/a")) == []
    assert "Credential=AKIAPROFILE/" in server.asked[0][1]
    with pytest.raises(Invalid, match="there is no AWS profile 'venus' on this machine"):
        S3ObjectStore(access=StoreAccess(profile="venus"))


def test_a_ca_bundle_is_trusted_and_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    here = S3ObjectStore().ca_bundle
    store = FastObjectStore(endpoint="https://s3.mars", access=StoreAccess(ca_bundle=here), **KEYS)
    assert store._http.connection_pool_kw["ca_certs"] == here
    assert LakeFSAdapter("https://lakefs.mars", "A", "b", ca_bundle=here).url == "https://lakefs.mars"
    for make in (
        lambda: S3ObjectStore(access=StoreAccess(ca_bundle="/none.pem"), **KEYS),
        lambda: LakeFSAdapter("https://lakefs.mars", "A", "b", ca_bundle="/none.pem"),
    ):
        with pytest.raises(Invalid, match=r"there is no file /none\.pem on this machine"):
            make()
