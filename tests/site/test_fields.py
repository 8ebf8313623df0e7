"""What the fields of the configuration do to the processes: addresses, keys, workers, logs, databases."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import pytest

from core.errors import Invalid, NotFound
from deployment import config
from deployment.wiring import clients
from lakemirror_site import databases
from tests.deployment.test_config import KEYS as KEYS_OF_LAKEFS
from tests.deployment.test_config import SOURCE, changed

ASK = """
import json
from django.conf import settings
from lakemirror_site import gunicorn_settings
print(json.dumps({
    "bind": gunicorn_settings.bind,
    "database": settings.DATABASES["default"]["NAME"],
    "queue": settings.Q_CLUSTER["cluster_name"],
    "io": settings.Q_CLUSTER["workers"],
    "spark": settings.Q_CLUSTER["ALT_CLUSTERS"]["us-east-1-spark"]["workers"],
    "level": settings.LOGGING["root"]["level"],
    "format": settings.LOGGING["formatters"]["chosen"]["()"].__name__,
    "key": settings.SECRET_KEY,
    "hosts": settings.ALLOWED_HOSTS,
    "hsts": settings.SECURE_HSTS_SECONDS,
}, default=str))
"""


def process(tmp_path: Path, told: Mapping[str, Any]) -> dict[str, Any]:
    """What a process with this configuration works with."""
    file = tmp_path / "c.json"
    file.write_text(json.dumps(KEYS_OF_LAKEFS | told))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEMIRROR_", "REPLICATION_"))}
    environ = kept | {
        "LAKEMIRROR_CONFIG": str(file),
        "LAKEMIRROR_VAR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "lakemirror_site.settings",
    }
    asked = subprocess.run([sys.executable, "-c", ASK], env=environ, cwd=config.BASE_DIR, capture_output=True)
    assert asked.returncode == 0, asked.stderr.decode()
    answer: dict[str, Any] = json.loads(asked.stdout)
    return answer


def test_a_process_works_with_what_it_was_told(tmp_path: Path) -> None:
    told = changed("mirrors_database", {"type": "sqlite", "sqlite": {"path": "here/lm.sqlite3"}}) | {
        "listen_address": "127.0.0.1:9123",
        "workers": {"io": 7, "spark": 2},
        "logging": {"level": "warn", "format": "json"},
        "web": {"allowed_hosts": ["lakemirror.example.com"], "hsts": "365d"},
    }
    works = process(tmp_path, told)
    assert works["bind"] == "127.0.0.1:9123"
    assert works["database"] == str(tmp_path / "here" / "lm.sqlite3")
    assert (works["queue"], works["io"], works["spark"]) == ("us-east-1", 7, 2)
    assert (works["level"], works["format"]) == ("WARNING", "JsonFormatter")
    assert (works["hosts"], works["hsts"]) == (["probe.invalid", "lakemirror.example.com"], 365 * 86400)
    other = process(tmp_path, told | {"auth": {"encrypt": {"secret_key": "another"}}})
    assert other["key"] != works["key"] == process(tmp_path, told)["key"]


def test_spark_jobs_are_as_many_as_metaranges_but_two_at_most_per_core() -> None:
    with mock.patch("os.cpu_count", return_value=2):
        numbers = [config.parse(changed("validator.num_workers", n)).spark_workers for n in (1, 3, 4, 9)]
    assert numbers == [1, 3, 4, 4]


def test_webhook_secrets_follow_the_secret_key() -> None:
    settings = [config.parse(changed("auth.encrypt.secret_key", key)) for key in ("one", "one", "other")]
    secrets = [told.hook_secret("us-west-2").reveal() for told in settings]
    assert secrets[0] == secrets[1] != secrets[2]


def test_connections_to_postgres_last_as_long_as_they_may(tmp_path: Path) -> None:
    told = config.parse(changed("mirrors_database.postgres.max_connection_age", "90s"))
    assert databases.default(told, tmp_path)["CONN_MAX_AGE"] == 90


# --- installations and stores -----------------------------------------------------------------------------------------


@contextmanager
def listening() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """A server that knows nothing: its URL, and (path, Authorization) of what it was asked."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization", "")))
            body = b'{"message": "not found"}'
            self.send_response(404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def tell(monkeypatch: pytest.MonkeyPatch, told: Mapping[str, Any]) -> None:
    settings = config.parse(told)
    monkeypatch.setattr(config, "current", lambda: settings)


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2"])
def test_each_regions_lakefs_is_asked_at_its_endpoint_with_our_keys(
    monkeypatch: pytest.MonkeyPatch, region: str
) -> None:
    with listening() as (url, asked):
        there = {"regional_endpoint": url} if region == "us-east-1" else {"dst_endpoints": {region: url}}
        keys = {"source_lakefs_access_key_id": "AKIA", "source_lakefs_secret_access_key": "s3cret"}
        tell(monkeypatch, {**SOURCE, **there, **keys})
        with pytest.raises(NotFound):
            clients.lakefs(region).get_repository("lake")
    assert asked == [("/api/v1/repositories/lake", f"Basic {base64.b64encode(b'AKIA:s3cret').decode()}")]


def signed(region: str) -> tuple[str, str, str, str]:
    """How the store of a region is asked for s3://bucket/key: address, key id, region of the signature, token."""
    store: Any = clients.objects(region)
    url = store._client.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "key"})
    query = parse_qs(urlsplit(url).query)
    key_id, _day, signed_for, *_ = query["X-Amz-Credential"][0].split("/")
    return url.partition("?")[0], key_id, signed_for, query.get("X-Amz-Security-Token", [""])[0]


KEYS = {"access_key_id": "AKIA1", "secret_access_key": "one", "session_token": "token"}


def test_the_store_is_the_one_that_the_blockstore_names(monkeypatch: pytest.MonkeyPatch) -> None:
    s3 = {"region": "mars-1", "endpoint": "http://minio:9000", "force_path_style": True, "credentials": KEYS}
    tell(monkeypatch, changed("blockstore.s3", s3))
    assert signed("us-east-1") == ("http://minio:9000/bucket/key", "AKIA1", "mars-1", "token")
    for path_style, host in ((False, "https://bucket.s3."), (True, "https://s3.")):
        tell(monkeypatch, changed("blockstore.s3", {"force_path_style": path_style, "credentials": KEYS}))
        assert signed("us-west-2")[0].startswith(host)


def test_a_stores_keys_may_be_those_of_a_profile_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "credentials"
    file.write_text("[lake]\naws_access_key_id = AKIA3\naws_secret_access_key = three\n")
    told = {"endpoint": "http://minio:9000", "profile": "lake", "credentials_file": str(file)}
    tell(monkeypatch, changed("blockstore.s3", told))
    assert signed("us-east-1") == ("http://minio:9000/bucket/key", "AKIA3", "us-east-1", "")
    tell(monkeypatch, changed("blockstore.s3", told) | {"stores": {"us-west-2": {"endpoint": "http://own:9000"}}})
    assert signed("us-west-2")[:2] == ("http://own:9000/bucket/key", "AKIA3"), "keys not given there are those shared"
    file.unlink()
    clients._objects.cache_clear()
    with pytest.raises(Invalid, match=r"no file .*credentials on this machine"):
        signed("us-east-1")


def test_a_store_is_asked_again_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    told = changed("blockstore.s3", {"endpoint": "http://minio:9000", "credentials": KEYS, "max_retries": 7})
    tell(monkeypatch, told)
    assert (clients.objects("us-east-1").tries, clients.quick_objects("us-east-1").tries) == (8, 1)


def test_a_regions_own_store_comes_before_the_blockstore(monkeypatch: pytest.MonkeyPatch) -> None:
    told = changed("blockstore.s3", {"endpoint": "http://minio:9000", "credentials": KEYS})
    own = {"endpoint": "http://own:9000", "force_path_style": True}
    tell(monkeypatch, told | {"stores": {"us-west-2": own}})
    assert signed("us-west-2") == ("http://own:9000/bucket/key", "AKIA1", "us-west-2", "token")
    other = {"access_key_id": "AKIA2", "secret_access_key": "two"}
    tell(monkeypatch, told | {"stores": {"us-west-2": own | {"credentials": other}}})
    assert signed("us-west-2") == ("http://own:9000/bucket/key", "AKIA2", "us-west-2", "")
