"""Installations in the database: how they become part of the configuration, and what becomes of their secrets."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from adapters.lakefs import LakeFSAdapter
from adapters.s3.store import S3ObjectStore
from adapters.s3.store_keys import keys_of
from audit.models import AuditEvent
from core.errors import Conflict, Denied, Invalid, Stale, Unreachable, Unreadable
from core.installations.settings import Secrets, Wish, check_wish
from core.store_access import StoreAccess
from deployment import config
from deployment.config_sections import Encrypt
from deployment.wiring import check_jobs, clients
from installations import refresh
from installations.models import OLD_KEY, Installation
from installations.services import etag_of, installation_create, installation_delete, installation_update
from jobs import duties
from mirrors.models import Mirror, Repository
from rbac.models import User
from spark_jobs.session import code_archive
from tests.api import Api
from tests.mirrors.harness import Deployment, forget_installations
from web.etags import Seen

pytestmark = pytest.mark.django_db

MARS = Wish(
    "mars-1", "http://lakefs.mars:8000", "AKIALAKE", store_endpoint="http://s3.mars:9000", store_access_key_id="AKIAS3"
)
SECRETS = Secrets("lakefs-of-mars", "store-of-mars")
NONE = Secrets()


@pytest.fixture(autouse=True)
def as_told() -> Iterator[None]:
    """What a test adds is gone after it."""
    forget_installations()
    yield
    forget_installations()


@pytest.fixture
def mars(owner: User) -> Installation:
    return installation_create(actor=owner, wish=MARS, secrets=SECRETS)


def change(owner: User, secrets: Secrets = NONE, **changes: Any) -> Installation:
    return installation_update(actor=owner, region="mars-1", wish=replace(MARS, **changes), secrets=secrets)


def told_as(key: str) -> config.Config:
    own = config.from_file()
    return replace(own, auth=config.Auth(Encrypt(config.Secret(key))))


def test_what_is_added_holds_at_once(mars: Installation) -> None:
    known = config.current()
    assert (known.regions[-1], known.served[-1]) == ("mars-1", "mars-1")
    assert duties.queue_name("manage", "mars-1") == known.region
    lakefs, store = clients.lakefs("mars-1"), clients.objects("mars-1")
    assert isinstance(lakefs, LakeFSAdapter) and isinstance(store, S3ObjectStore)
    assert (lakefs.url, lakefs.key_id, store.endpoint) == ("http://lakefs.mars:8000", "AKIALAKE", "http://s3.mars:9000")
    assert store._session.get_credentials().secret_key == "store-of-mars"


def test_clients_are_replaced_when_something_changes(mars: Installation, owner: User) -> None:
    before = clients.lakefs("mars-1"), clients.objects("mars-1")
    assert (clients.lakefs("mars-1"), clients.objects("mars-1")) == before
    change(owner, Secrets(store="another"))
    assert clients.lakefs("mars-1") is before[0]
    assert clients.objects("mars-1")._session.get_credentials().secret_key == "another"  # type: ignore[attr-defined]
    change(owner, Secrets("new"), lakefs_endpoint="https://lakefs.mars")
    assert clients.lakefs("mars-1").url == "https://lakefs.mars"  # type: ignore[attr-defined]


def test_other_processes_see_it_within_seconds(mars: Installation, settings: Any) -> None:
    config.put_together(None)  # as another process, which has read nothing since
    refresh._last_read = None
    settings.INSTALLATIONS_SECONDS = 0
    refresh.refresh()
    assert "mars-1" in config.current().regions
    Installation.objects.all().delete()
    refresh.refresh()
    assert config.current() is config.from_file()


def test_one_request_or_round_sees_one_configuration(mars: Installation) -> None:
    """Another thread of the process reads meanwhile that an installation was deleted."""
    with config.snapshot():
        elsewhere = threading.Thread(target=config.put_together, args=(None,))
        elsewhere.start()
        elsewhere.join()
        assert "mars-1" in config.current().regions
    assert "mars-1" not in config.current().regions


def test_what_a_request_changes_holds_for_itself_at_once(owner: User) -> None:
    with config.snapshot():
        installation_create(actor=owner, wish=MARS, secrets=SECRETS)
        assert "mars-1" in config.current().regions
    assert "mars-1" in config.current().regions


def test_nothing_of_the_files_keys_goes_to_an_installation_that_it_does_not_have(owner: User) -> None:
    wish = replace(MARS, store_access="chain", store_access_key_id="")
    installation_create(actor=owner, wish=wish, secrets=Secrets("lakefs-of-mars"))
    there = config.current().installation("mars-1")
    assert there.store.credentials.access_key_id == ""
    assert there.lakefs is not None and there.lakefs.keys.access_key_id == "AKIALAKE"


def test_keys_travel_sealed_to_executors(mars: Installation, tmp_path: Path) -> None:
    source = Repository(region="us-east-1", name="lake", storage_namespace="s3://src/lake")
    told = check_jobs.settings_of(Mirror(name="m", region="mars-1", source=source, storage_namespace="s3://dst/lake"))
    assert "store-of-mars" not in repr(told) and "AKIAS3" not in repr(told)
    assert keys_of("mars-1", told.access) is None
    said = StringIO()
    call_command("stores_key", stdout=said)
    name, _, key = said.getvalue().strip().partition("=")
    assert opened_by_executor(tmp_path, told.access, {name: key}) == "StoreKeys AKIAS3 store-of-mars"
    assert opened_by_executor(tmp_path, told.access, {name: "0" * 64}) == "None"
    assert opened_by_executor(tmp_path, told.access, {}) == "None"


def opened_by_executor(folder: Path, access: StoreAccess, environment: dict[str, str]) -> str:
    """What a Python that has nothing but what a session brings along makes of a job's keys."""
    archive = folder / "code.zip"
    archive.write_bytes(code_archive())
    ask = (
        "import pickle, sys; from adapters.s3.store_keys import keys_of\n"
        "k = keys_of('mars-1', pickle.load(sys.stdin.buffer))\n"
        "print(type(k).__name__, k.access_key_id, k.secret_access_key) if k else print(None)"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask],
        input=pickle.dumps(access),
        env={"PYTHONPATH": str(archive), "PATH": os.environ["PATH"], **environment},
        cwd=folder,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def test_secrets_are_in_no_column_and_in_no_event(mars: Installation, owner: User) -> None:
    change(owner, Secrets("newer-lakefs"))
    kept = json.dumps([list(Installation.objects.values()), list(AuditEvent.objects.values())], default=str)
    assert not [secret for secret in ("lakefs-of-mars", "store-of-mars", "newer-lakefs") if secret in kept]
    event = AuditEvent.objects.get(action="auth:UpdateInstallation")
    assert (event.before, event.after) == (None, {"lakefs_secret_access_key": "changed"})
    assert Installation.objects.get().secrets() == Secrets("newer-lakefs", "store-of-mars")


def test_a_kept_secret_goes_nowhere_else(mars: Installation, owner: User) -> None:
    for changes in ({"lakefs_endpoint": "http://evil"}, {"proxy": "http://evil:1"}, {"lakefs_access_key_id": "B"}):
        with pytest.raises(Invalid, match="enter the secret access key of lakeFS again") as caught:
            change(owner, **changes)
        assert caught.value.field == "lakefs_secret_access_key"
    with pytest.raises(Invalid, match="of the store again"):
        change(owner, store_access_key_id="B")


def test_a_row_that_was_tampered_with_is_told_and_not_used(mars: Installation, owner: User) -> None:
    Installation.objects.update(lakefs_endpoint="http://evil", version=2)
    refresh.read()
    assert "mars-1" in config.current().regions and config.current().lakefs_url("mars-1") == "http://evil"
    for ask in (clients.lakefs, clients.quick_objects):
        with pytest.raises(Unreadable, match=r"'mars-1' was not changed by LakeMirror"):
            ask("mars-1")
    change(owner, SECRETS)
    assert clients.lakefs("mars-1").key_id == "AKIALAKE"  # type: ignore[attr-defined]


def test_another_key_is_told_and_rotation_mends_it(
    mars: Installation, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation_create(actor=owner, wish=replace(MARS, region="venus-1"), secrets=SECRETS)
    old = config.from_file().auth.encrypt.secret_key.reveal()
    new = told_as("another key")
    monkeypatch.setattr(config, "from_file", lambda: new)
    refresh._last_read = None
    refresh.read()
    with pytest.raises(Unreadable, match=r"'mars-1' were sealed with another auth.encrypt.secret_key.*rotate_secrets"):
        clients.lakefs("mars-1")
    with pytest.raises(CommandError, match=f"of 2 installations can't be opened .{OLD_KEY} is not set"):
        call_command("rotate_secrets", stderr=StringIO())
    monkeypatch.setenv(OLD_KEY, old)
    refresh._last_read = None
    refresh.read()
    assert clients.lakefs("mars-1").key_id == "AKIALAKE"  # type: ignore[attr-defined]
    change(owner, store_region="mars")  # seals it anew, as a rotation that was broken off has done
    said = StringIO()
    call_command("rotate_secrets", stdout=said)
    assert "venus-1: sealed with the current key" in said.getvalue()
    assert "mars-1: was already sealed with it" in said.getvalue()
    monkeypatch.delenv(OLD_KEY)
    assert Installation.objects.get(region="venus-1").secrets() == SECRETS


def test_the_file_wins_and_a_name_in_both_is_an_error(mars: Installation, owner: User) -> None:
    with pytest.raises(Conflict, match="the configuration file has an installation 'eu-west-1' already"):
        installation_create(actor=owner, wish=replace(MARS, region="eu-west-1"), secrets=SECRETS)
    with pytest.raises(Conflict, match="there is an installation 'mars-1' already"):
        installation_create(actor=owner, wish=MARS, secrets=SECRETS)
    with pytest.raises(Conflict, match="is in the configuration file"):
        installation_delete(actor=owner, region="eu-west-1")
    Installation.objects.update(region="eu-west-1", version=2)
    refresh.read()
    assert config.current() is config.from_file()


def test_what_is_used_is_not_deleted(mars: Installation, owner: User) -> None:
    source = Repository.objects.create(region="mars-1", name="lake", storage_namespace="s3://a/b", creation_date=1)
    Mirror.objects.create(name="lake-eu", source=source, region="eu-west-1", storage_namespace="s3://dst/lake")
    with pytest.raises(Conflict, match=r"'mars-1' is used by 1 mirrored repository\. Delete these first"):
        installation_delete(actor=owner, region="mars-1")
    Mirror.objects.all().delete()
    installation_delete(actor=owner, region="mars-1")
    assert "mars-1" not in config.current().regions


def test_who_saw_older_settings_changes_nothing(mars: Installation, owner: User, teammate: User) -> None:
    seen = Seen(frozenset({etag_of(mars)}))
    change(owner, store_region="mars")
    with pytest.raises(Stale):
        installation_update(actor=owner, region="mars-1", wish=MARS, secrets=Secrets(), seen=seen)
    with pytest.raises(Denied, match="auth:UpdateInstallation on arn:lakefs:auth:::installation/mars-1"):
        installation_update(actor=teammate, region="mars-1", wish=MARS, secrets=Secrets())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("region", "Mars 1"),
        ("lakefs_endpoint", ""),
        ("lakefs_endpoint", "ftp://lakefs"),
        ("lakefs_endpoint", "http://lakefs:99999"),
        ("lakefs_endpoint", "http://lakefs/api/v1"),
        ("lakefs_endpoint", "http://name:hunter2@lakefs"),
        ("proxy", "http://name:hunter2@proxy:3128"),
        ("lakefs_access_key_id", ""),
        ("store_endpoint", "http://s3/?x=1"),
        ("store_access", "magic"),
        ("store_access_key_id", ""),
        ("store_profile", "one"),
        ("store_role_arn", "admin"),
        ("store_role_external_id", "42"),
        ("ca_bundle", "ca.pem"),
        ("store_region", "a\0b"),
    ],
)
def test_a_wrong_setting_is_named(field: str, value: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_wish(replace(MARS, served_by="mars-1", **{field: value}))  # type: ignore[arg-type]
    assert caught.value.field == field
    assert "hunter2" not in str(caught.value)


# --- the API ----------------------------------------------------------------------------------------------------------

PATH = "/service/replication/v1/installations"
BODY = {
    "region": "mars-1",
    "lakefs_endpoint": "http://lakefs.mars:8000/",
    "lakefs_access_key_id": "AKIALAKE",
    "lakefs_secret_access_key": "lakefs-of-mars",
    "store_endpoint": "http://s3.mars:9000",
    "store_access_key_id": "AKIAS3",
    "store_secret_access_key": "store-of-mars",
}
SETTINGS = {
    name: value
    for name, value in BODY.items()
    if name not in ("region", *[f"{n}_secret_access_key" for n in ("lakefs", "store")])
}


def test_the_api_adds_shows_changes_and_deletes(api: Api) -> None:
    status, made = api.call("POST", PATH, BODY)
    assert (status, made["origin"], made["lakefs_endpoint"]) == (201, "database", "http://lakefs.mars:8000")
    status, page = api.call("GET", PATH)
    assert [one["region"] for one in page["results"]] == ["ap-southeast-2", "eu-west-1", "mars-1", "us-east-1"]
    assert page["results"][1]["origin"] == "file"
    assert api.call("GET", f"{PATH}/mars-1")[1] == made
    assert "of-mars" not in json.dumps([made, page])
    status, changed = api.call("PUT", f"{PATH}/mars-1", SETTINGS | {"store_region": "mars"})
    assert (status, changed["store_region"], Installation.objects.get().secrets()) == (200, "mars", SECRETS)
    assert api.call("DELETE", f"{PATH}/mars-1") == (204, None)
    assert api.call("GET", f"{PATH}/mars-1")[0] == 404


def test_the_api_refuses_with_a_field_and_what_to_do(api: Api, mars: Installation) -> None:
    assert api.call("POST", PATH, BODY)[0] == 409
    assert api.call("POST", PATH, BODY | {"region": "venus-1", "lakefs_endpont": "x"})[1]["message"].startswith(
        "lakefs_endpont: there is no such setting"
    )
    status, told = api.call("PUT", f"{PATH}/mars-1", SETTINGS | {"lakefs_endpoint": "http://evil"})
    assert (status, told["message"][:77]) == (
        400,
        "lakefs_secret_access_key: enter the secret access key of lakeFS again. A stor",
    )
    api.headers["If-Match"] = etag_of(mars)
    assert api.call("PUT", f"{PATH}/mars-1", SETTINGS | {"store_region": "mars"})[0] == 200
    assert api.call("PUT", f"{PATH}/mars-1", SETTINGS)[0] == 412
    assert api.call("DELETE", f"{PATH}/mars-1")[0] == 412
    del api.headers["If-Match"]
    assert api.call("PUT", f"{PATH}/eu-west-1", SETTINGS)[0] == 409


def test_who_may_only_look_changes_and_tests_nothing(teammate: User, mars: Installation) -> None:
    tom = Api(teammate)
    assert tom.call("GET", f"{PATH}/mars-1")[0] == 200
    for method, path, body in (
        ("POST", PATH, BODY | {"region": "venus-1"}),
        ("PUT", f"{PATH}/mars-1", SETTINGS),
        ("DELETE", f"{PATH}/mars-1", None),
        ("POST", f"{PATH}/mars-1/test", {}),
    ):
        assert tom.call(method, path, body)[0] == 403, method


def test_a_test_asks_for_all_that_a_mirror_needs(api: Api, lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    status, told = api.call("POST", f"{PATH}/us-east-1/test")
    states = {check["id"]: check["state"] for check in told["checks"]}
    assert (status, told["ok"], told["lakefs_version"]) == (200, True, "1.84.0")
    assert states["store-versioning"] == "warning" and states["store-bucket"] == states["lakefs-clock"] == "ok"
    assert states["lakefs-right:fs:ListCommits"] == "ok" and "lakefs-right:fs:CreateCommit" not in states
    assert api.call("GET", f"{PATH}/us-east-1")[1]["ok"] is True
    _, told = api.call("POST", f"{PATH}/ap-southeast-2/test", {"namespace": "s3://dst/x"})
    states = {check["id"]: check["state"] for check in told["checks"]}
    assert states["lakefs-right:fs:CreateCommit"] == "ok"
    lm.ap.failing["server"] = Unreachable("nobody answers")
    _, told = api.call("POST", f"{PATH}/ap-southeast-2/test")
    assert (told["ok"], told["lakefs_version"]) == (False, None)
    assert api.call("POST", f"{PATH}/nowhere/test")[0] == 404


def test_a_test_of_what_cannot_be_opened_says_so(api: Api, mars: Installation) -> None:
    Installation.objects.update(lakefs_endpoint="http://evil", version=2)
    refresh.read()
    _, told = api.call("POST", f"{PATH}/mars-1/test")
    first, *others = told["checks"]
    assert (first["id"], first["state"]) == ("lakefs-reachable", "failed")
    assert "was not changed by LakeMirror" in first["message"]
    assert {check["state"] for check in others if check["id"].startswith("lakefs-")} == {"unknown"}
    _, shown = api.call("GET", f"{PATH}/mars-1")
    assert "enter its secrets again" in shown["problem"]
