"""A mirror's sweeps on stores as they are: found, approved, deleted. On moto; on MinIO, of which LAKEMIRROR_TEST_MINIO
names the binary; and on a real S3 server where LAKEMIRROR_TEST_S3 names one with its keys
(`http://key:secret@127.0.0.1:7480`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.remover import Remover
from adapters.s3.store import split_uri
from core.installations.replication_rights import Need, Side, store_policy
from core.sweeping import Standing
from jobs.models import Duty
from mirrors.models import Mirror, Sweep
from mirrors.services.sweeps.approval import sweep_approve
from rbac.models import User
from tests.fixtures import lm
from tests.minio_pair import BINARY, Minio
from tests.mirroring.swept import SOURCE, pass_time, sweep
from tests.mirroring.test_sweeps import gone, lake
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.s3_double import KEYS, running_moto

__all__ = ["gone", "lake", "lm"]
pytestmark = pytest.mark.django_db
REAL = os.environ.get("LAKEMIRROR_TEST_S3", "")
STORES = ["moto", *(["minio"] if BINARY else []), *(["real"] if REAL else [])]
LONG_AGO = timedelta(days=30)
ODD = ["a b", "a+b", "a%2Fb", "käse/ü/日本", "<xml>&amp;'\"", "folder/", "x" * 900]
State = Sweep.State


class AgedRemover(Remover):
    """As if all had been written long ago: no store can be told so. `lately` holds URIs of what was not."""

    lately: frozenset[str] = frozenset()

    def standing(self, uri: str) -> Standing | None:
        told = super().standing(uri)
        if told is None or told.modified is None or uri in self.lately:
            return told
        return replace(told, modified=told.modified - LONG_AGO)


class Store:
    """A server with the buckets of both sides, of which the mirror's keeps versions and takes locks."""

    def __init__(self, endpoint: str, keys: dict[str, str]) -> None:
        config = Config(signature_version="s3v4", s3={"addressing_style": "path"})
        pair = {f"aws_{name}": value for name, value in keys.items()}
        self.client: Any = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config, **pair)
        options = {"endpoint": endpoint, "region": "us-east-1", "force_path_style": True, "tries": 2, **keys}
        self.store = FastObjectStore(**options)
        self.remover = AgedRemover(self.store)
        self.client.create_bucket(Bucket="src")
        self.client.create_bucket(Bucket="dst", ObjectLockEnabledForBucket=True)

    def take(self, objects: dict[str, bytes]) -> None:
        """All that lies in a stand-in."""
        for uri, data in objects.items():
            self.put(uri, data)

    def put(self, uri: str, data: bytes, **more: Any) -> None:
        bucket, key = split_uri(uri)
        self.client.put_object(Bucket=bucket, Key=key, Body=data, **more)

    def takes(self, uri: str) -> bool:
        """Put an object of a name that some stores refuse."""
        try:
            self.put(uri, b"nobody's")
        except ClientError:
            return False
        return True

    def listed(self) -> set[str]:
        """The URIs of what lies in the mirror's namespace, but for what LakeMirror keeps there of its own."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="dst", PaginationConfig={"PageSize": 7})
        keys = {one["Key"] for page in pages for one in page.get("Contents", ())}
        return {f"s3://dst/{key}" for key in keys if "/_lakemirror/" not in key}

    def hold(self, uri: str, status: str) -> None:
        """A legal hold, on or off."""
        bucket, key = split_uri(uri)
        self.client.put_object_legal_hold(Bucket=bucket, Key=key, LegalHold={"Status": status})

    def versions(self, uri: str) -> list[dict[str, Any]]:
        """Of an object that a marker hides."""
        bucket, key = split_uri(uri)
        listed = self.client.list_object_versions(Bucket=bucket, Prefix=key)
        return [one for one in listed.get("Versions", ()) if one["Key"] == key]

    def narrow(self, minio: Minio, policy: dict[str, Any]) -> None:
        """From now on LakeMirror's own key may do this and no more."""
        minio.user("narrow", "narrow-secret", policy)
        options = {"endpoint": minio.endpoint, "region": "us-east-1", "force_path_style": True, "tries": 2}
        self.store = FastObjectStore(**options, access_key_id="narrow", secret_access_key="narrow-secret")
        self.remover = AgedRemover(self.store)

    def clear(self) -> None:
        for bucket in ("src", "dst"):
            for page in self.client.get_paginator("list_object_versions").paginate(Bucket=bucket):
                for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                    self.client.delete_object(Bucket=bucket, Key=one["Key"], VersionId=one["VersionId"])
            self.client.delete_bucket(Bucket=bucket)


def keys_of(minio: Minio) -> dict[str, str]:
    """Its administrator's."""
    return {"access_key_id": minio.keys[0], "secret_access_key": minio.keys[1]}


@contextmanager
def server(kind: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Its endpoint and keys."""
    if kind == "moto":
        with running_moto() as endpoint:
            yield endpoint, KEYS
    elif kind == "minio":
        made = Minio(folder)
        try:
            yield made.endpoint, keys_of(made)
        finally:
            made.stop()
    else:
        parts = urlsplit(REAL)
        keys = {"access_key_id": parts.username or "", "secret_access_key": parts.password or ""}
        yield f"{parts.scheme}://{parts.hostname}:{parts.port}", keys


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with server(request.param, tmp_path) as (endpoint, keys):
        made = Store(endpoint, keys)
        yield made
        made.clear()


@contextmanager
def on(store: Store, lake: Deployment) -> Iterator[None]:
    """Both sides' objects lie there, as in the stand-ins until now; sweeps and deletions ask this store."""
    store.take(lake.us_store.objects)
    store.take(lake.eu_store.objects)
    with (
        mock.patch("deployment.wiring.clients.objects", lambda region: store.store),
        mock.patch("deployment.wiring.sweep_jobs.store", lambda region: store.store),
        mock.patch("deployment.wiring.sweep_jobs.remover", lambda region: store.remover),
    ):
        yield


def named(lake: Deployment) -> set[str]:
    """The URIs of all that any ref of either side leads to, with its history: what never goes."""
    heads = [*lake.lake.repository.branches.values(), *lake.eu.repositories["lake-eu"].branches.values()]
    seen: set[str] = set()
    while heads:
        if (commit := heads.pop()) not in seen:
            seen.add(commit)
            heads.extend(lake.lake.repository.commits[commit].parents)
    trees = (lake.lake.trees.get(commit, {}) for commit in seen)
    return {f"{NAMESPACE}/{entry.address}" for tree in trees for entry in tree.values()}


def through(lake: Deployment) -> Sweep:
    last = sweep(lake)
    assert last is not None
    return last


def test_what_nobody_needs_is_found_approved_and_deleted(
    store: Store, lake: Deployment, gone: list[str], owner: User
) -> None:
    garbage = {f"{NAMESPACE}/{address}" for address in gone}
    left_over = {f"{NAMESPACE}/data/{name}" for name in ODD}
    held, lately, metadata = (f"{NAMESPACE}/{name}" for name in ("data/held", "data/lately", "_lakefs/unknown"))
    with on(store, lake):
        left_over = {uri for uri in left_over if store.takes(uri)}
        for uri in (held, lately, metadata):
            store.put(uri, b"nobody's")
        store.hold(held, "ON")
        store.remover.lately = frozenset({lately})
        before = store.listed()
        assert named(lake) <= before and not named(lake) & garbage and len(left_over) >= len(ODD) - 1
        first = through(lake)
        assert (first.state, first.found, first.due) == (State.DONE, 2 + len(left_over) + 2, 0), first.reason
        pass_time(lake)
        Mirror.objects.update(delete_percent=0)
        waiting = through(lake)
        assert (waiting.state, waiting.due) == (State.WAITING, first.found), waiting.reason
        assert store.listed() == before, "nothing goes without approval"
        sweep_approve(actor=owner, mirror=Mirror.objects.get(), number=waiting.pk)
        done = through(lake)
        assert (done.state, done.deleted, done.locked, done.spared, done.refused) == (
            State.DONE,
            2 + len(left_over),
            1,
            1,
            0,
        )
        assert before - store.listed() == garbage | left_over
        assert named(lake) <= store.listed() and {held, lately, metadata} <= store.listed()
        assert all(len(store.versions(uri)) == 1 for uri in garbage), "it can be had back"
        store.hold(held, "OFF")


def test_what_came_to_be_needed_after_the_approval_stays(
    store: Store, lake: Deployment, gone: list[str], owner: User
) -> None:
    left_over = f"{NAMESPACE}/data/left-over"
    with on(store, lake):
        store.put(left_over, b"nobody's")
        through(lake)
        pass_time(lake)
        Mirror.objects.update(delete_percent=0)
        waiting = through(lake)
        assert (waiting.state, waiting.due) == (State.WAITING, 3), waiting.reason
        sweep_approve(actor=owner, mirror=Mirror.objects.get(), number=waiting.pk)
        needed = f"{SOURCE}/{gone[0]}"
        store.put(needed, b"there again")
        lake.lake.repository.branches["again"] = next(
            commit for commit, tree in lake.lake.trees.items() if any(one.address == gone[1] for one in tree.values())
        )
        before = store.listed()
        done = through(lake)
        assert (done.state, done.deleted, done.spared) == (State.DONE, 1, 2), done.reason
        assert before - store.listed() == {left_over}
        assert named(lake) <= store.listed()


def test_a_source_that_is_not_there_deletes_nothing(store: Store, lake: Deployment, gone: list[str]) -> None:
    with on(store, lake):
        through(lake)
        pass_time(lake)
        lake.run(Duty.objects.get(kind="sweep").pk)
        Mirror.objects.update(reselected=False)
        lake.run(Duty.objects.get(kind="sweep").pk)
        assert Sweep.objects.all()[0].state == State.DELETING
        before = store.listed()
        for one in store.client.list_objects_v2(Bucket="src").get("Contents", ()):
            store.client.delete_object(Bucket="src", Key=one["Key"])
        lake.run(Duty.objects.get(kind="validate").pk)
        last = Sweep.objects.all()[0]
        assert (last.state, store.listed()) == (State.FROZEN, before)
        assert "does not show" in last.reason


SIDES = (Need(Side.SOURCE, "lake", "s3://src/lake"), Need(Side.DESTINATION, "lake-eu", "s3://dst/lake", managed=True))


@pytest.mark.skipif(not BINARY, reason="LAKEMIRROR_TEST_MINIO names no MinIO")
@pytest.mark.parametrize("follows", [True, False])
def test_the_policy_that_is_printed_lets_it_sweep_and_only_who_follows_delete(
    tmp_path: Path, lake: Deployment, gone: list[str], follows: bool
) -> None:
    minio, held = Minio(tmp_path), f"{NAMESPACE}/data/held"
    try:
        store = Store(minio.endpoint, keys_of(minio))
        with on(store, lake):
            store.put(held, b"nobody's")
            store.hold(held, "ON")
            policy = store_policy([replace(need, follows_gc=follows) for need in SIDES])
            assert policy is not None
            store.narrow(minio, policy)
            before = store.listed()
            through(lake)
            pass_time(lake)
            last = through(lake)
            assert last.due == 3, last.reason
            left = {f"{NAMESPACE}/{address}" for address in gone} if follows else set()
            assert (before - store.listed(), last.deleted) == (left, len(left))
            assert last.state == (State.DONE if follows else State.FROZEN)
            assert (last.locked, "s3:DeleteObject" in last.reason) == (int(follows), not follows), last.reason
    finally:
        minio.stop()


def test_a_bucket_that_is_gone_is_no_404_of_an_object(store: Store) -> None:
    with pytest.raises(ClientError):
        store.client.head_bucket(Bucket="no-such-bucket")
    with pytest.raises(Exception, match=r".+"):
        store.store.page("s3://no-such-bucket/lake/")
    assert store.remover.standing("s3://src/lake/data/none") is None
