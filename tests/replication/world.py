"""Rules between places of stores in memory: no network, no queue, no Spark; time passes on request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from unittest import mock
from urllib.parse import unquote, urlsplit

from django.db.models import Q
from django.db.models.functions import Now

from adapters.s3.fast_store import FastObjectStore, ListedPage
from adapters.s3.store import NO_HEADERS, split_uri
from adapters.s3.write_probe import probe
from core.errors import Conflict, Invalid, LakeMirrorError, Unreachable
from core.replicating.eligible import is_own
from core.travelling.describing import TAGGING, tagging
from db import clock
from deployment.wiring.replication_jobs import quick_place_of
from jobs import duties
from jobs.models import Duty
from replication.engine.building import pin_name
from replication.models import Link, OpenObject, Rule
from replication.transitions import duties as rule_duties
from replication.transitions import ledger, shards
from tests.exports.memory_s3 import Answer, etag
from tests.mirrors.harness import Deployment
from tests.replication.beside_bytes import BesideBytes

HOME, AWAY, FAR = "us-east-1", "eu-west-1", "ap-southeast-2"
KINDS = (rule_duties.SCAN, rule_duties.LINK, rule_duties.PASS)


class Asked(Counter[str]):
    """How many requests of each kind there were; called, it asks, as a store does."""

    def __init__(self, store: FastObjectStore) -> None:
        super().__init__()
        self._store = store

    def __call__(self, method: str, url: str, doing: str, headers: Mapping[str, str] = NO_HEADERS) -> Any:
        return FastObjectStore.asked(self._store, method, url, doing, headers)


class Store(BesideBytes):
    """A store in memory that also answers for its buckets, and tells when objects were written.

    `etag_of`: the ETags that it gives; `told`: headers of every answer about an object."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = Asked(self)
        self.buckets = {"src": {}, "out": {}, "two": {}}
        self.modified: dict[tuple[str, str], datetime] = {}
        self.written: list[tuple[str, str, bytes]] = []
        self.deleted: list[tuple[str, str, bytes]] = []
        self.etag_of: Callable[[bytes], str] = etag
        self.told: dict[str, str] = {}
        self.created: dict[str, str] = {}
        """When buckets were created; of one that isn't here nobody is told."""
        self.heeds_if_match = True
        self.refuses_conditions = False
        self.locked: set[str] = set()

    head = FastObjectStore.head

    def has_already(self, bucket: str, key: str, data: bytes) -> None:
        """It has an object that nobody writes."""
        self.buckets[bucket][key] = data

    def put_plainly(self, bucket: str, key: str, data: bytes) -> None:
        """Somebody writes it, with no metadata."""
        self.buckets[bucket][key] = data
        self._described.pop((id(self.buckets[bucket]), key), None)
        self.keep(bucket, key, {})

    def _own(self, answer: Any, data: bytes) -> dict[str, str]:
        return {**(answer.headers or {}), "etag": f'"{self.etag_of(data)}"', **self.told}

    def _expect(self, data: bytes | None, match: str | None) -> None:
        if match and (data is None or match.strip('"') != self.etag_of(data)):
            raise Conflict("412 PreconditionFailed")

    def _put(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Any:
        if self.refuses_conditions and given.keys() & {"if-match", "if-none-match"}:
            error = Invalid("501 NotImplemented")
            error.store_code = "NotImplemented"
            raise error
        return Answer(b"", self._own(super()._put(bucket, key, given, body), body))

    def _head(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Any:
        if not key:
            return Answer(b"", {})
        answer = self._get(bucket, key, given, body)
        lock = {"x-amz-object-lock-legal-hold": "ON"} if key in self.locked else {}
        return Answer(b"", {**self._own(answer, bucket[key]), **self._dated(bucket, key), **lock})

    def send(self, method: str, url: str, doing: str, *more: Any, **named: Any) -> Any:
        """As MemoryS3; asked for its buckets, it tells when they were created."""
        if method == "GET" and urlsplit(url).path in ("", "/"):
            tag = "<Bucket><Name>{}</Name><CreationDate>{}</CreationDate></Bucket>"
            told = "".join(tag.format(name, at) for name, at in self.created.items())
            return Answer(f"<ListAllMyBucketsResult><Buckets>{told}</Buckets></ListAllMyBucketsResult>".encode(), {})
        return super().send(method, url, doing, *more, **named)

    def _delete(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Any:
        match = given.get("if-match", "").strip('"')
        if match and self.heeds_if_match and key in bucket and self.etag_of(bucket[key]) != match:
            raise Conflict("412 PreconditionFailed")
        name = next(name for name, objects in self.buckets.items() if objects is bucket)
        self.deleted.append((name, key, bucket.get(key, b"")))
        return super()._delete(bucket, key, given, body)

    def _get(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Any:
        answer = super()._get(bucket, key, given, body)
        return Answer(answer.data, {**self._own(answer, bucket[key]), **self.beside(self._name(bucket), key)})

    def _copy(self, bucket: dict[str, bytes], key: str, given: Mapping[str, str], body: bytes) -> Any:
        """With what a copy takes along by itself."""
        name, _, source = unquote(given["x-amz-copy-source"]).lstrip("/").partition("/")
        own = dict(given)
        if own.get("x-amz-metadata-directive") == "COPY" and source in self.buckets.get(name, {}):
            own |= self.described(name, source)
        if own.get("x-amz-tagging-directive") != "REPLACE":
            own[TAGGING] = tagging(self.tags.get((name, source), {}))
        return super()._copy(bucket, key, own, body)

    def _name(self, bucket: dict[str, bytes]) -> str:
        return next(name for name, objects in self.buckets.items() if objects is bucket)

    def _dated(self, bucket: dict[str, bytes], key: str) -> dict[str, str]:
        name = self._name(bucket)
        at = self.modified.get((name, key))
        return {"last-modified": format_datetime(at.astimezone(UTC), usegmt=True)} if at else {}

    def _write(self, bucket: dict[str, bytes], key: str, data: bytes, given: Mapping[str, str]) -> None:
        name = self._name(bucket)
        self.keep(name, key, given)
        if not is_own(key):
            self.written.append((name, key, data))
        self.modified[name, key] = clock.now()
        super()._write(bucket, key, data, given)

    def page(self, prefix_uri: str, after: str = "", *, dated: bool = False) -> ListedPage:
        """As MemoryS3, in the order of bytes; with times where somebody asks."""
        name = split_uri(prefix_uri)[0]
        page = super().page(prefix_uri, after)
        page.etags[:] = [self.etag_of(self.buckets[name][key]) for key in page.keys]
        if dated:
            times = [self.modified.get((name, key)) for key in page.keys]
            page.modified.extend(at.isoformat() if at else "" for at in times)
        return page


class World:
    """Stores of three regions, and what happens to them. `passed`: how much later it is than by the clock."""

    def __init__(self, lm: Deployment) -> None:
        self.lm = lm
        self.stores = {region: Store() for region in (HOME, AWAY, FAR)}
        self.passed = timedelta()

    @property
    def home(self) -> Store:
        return self.stores[HOME]

    @property
    def away(self) -> Store:
        return self.stores[AWAY]

    @property
    def far(self) -> Store:
        return self.stores[FAR]

    def put(self, key: str, data: bytes = b"data", bucket: str = "src", tags: Mapping[str, str] | None = None) -> None:
        """An object of the source's region, written now."""
        self.home.buckets[bucket][key] = data
        self.home.keep(bucket, key, {TAGGING: tagging(tags or {})})
        self.home.modified[bucket, key] = clock.now()

    def rule(
        self, *targets: tuple[str, str], name: str = "r", uri: str = "s3://src", pinned: bool = True, **more: Any
    ) -> Rule:
        """A rule with a link to each of these, by default one, as services make it; `pinned`: it has written before."""
        now = clock.now()
        values = {"name": name, "region": HOME, "uri": uri, "created_at": now, "changed_at": now} | more
        rule = Rule.objects.create(**values)
        for number, (region, target) in enumerate(targets or [(AWAY, "s3://out")], 1):
            link = Link.objects.create(rule=rule, number=number, region=region, uri=target)
            if pinned:
                self.pin(link)
        shards.begin(rule, now)
        rule_duties.ensure(rule)
        return rule

    def pin(self, link: Link) -> None:
        """It has written before: its target bears its pin."""
        bucket, _, prefix = link.uri.removeprefix("s3://").partition("/")
        store = self.stores.get(link.region)
        if store is not None and bucket in store.buckets:
            link.identity, link.pinned_at = f"{link.pk:032x}", clock.now()
            link.save()
            key = f"{prefix}/_lakemirror/{pin_name(link)}".lstrip("/")
            store.has_already(bucket, key, json.dumps({"link": link.identity}).encode())

    def link(self, number: int = 1, name: str = "r") -> Link:
        return Link.objects.select_related("rule").get(rule__name=name, number=number)

    def rows(self, number: int = 1, **which: Any) -> list[OpenObject]:
        return list(OpenObject.objects.filter(link=self.link(number), **which).order_by("key"))

    def names(self, number: int = 1, **which: Any) -> list[str]:
        return [row.name for row in self.rows(number, **which)]

    def later(self, seconds: float) -> None:
        """So much time goes by."""
        self.passed += timedelta(seconds=seconds)

    def scan(self) -> list[str]:
        """One round of all looks."""
        return self._run(rule_duties.SCAN)

    def copy(self) -> list[str]:
        """One round of all links."""
        return self._run(rule_duties.LINK)

    def look(self) -> list[str]:
        """One round of all passes."""
        return self._run(rule_duties.PASS)

    def work(self, rounds: int = 3) -> list[str]:
        """Let all duties run; what they said."""
        return [text for _ in range(rounds) for text in (*self.scan(), *self.copy())]

    def _run(self, kind: str) -> list[str]:
        told = []
        for duty in Duty.objects.filter(kind=kind).order_by("pk"):
            Duty.objects.filter(pk=duty.pk).update(due_at=Now(), holder="", until=None)
            told.append(duties.run(duty.pk, holder="worker-1"))
        return told

    def there(self, region: str = AWAY, bucket: str = "out") -> dict[str, bytes]:
        """What is at a target, by key; not what LakeMirror keeps for itself."""
        found = self.stores[region].buckets[bucket]
        return {key: data for key, data in found.items() if not is_own(key)}

    def check_counts(self) -> None:
        """Counts are what a reading of the rows gives, and the oldest is the oldest."""
        for link in Link.objects.all():
            counts = {(row.status, row.code): (row.number, row.bytes) for row in link.counts.all()}
            counts = {key: value for key, value in counts.items() if value != (0, 0)}
            assert counts == ledger.real_counts(link.pk)
            oldest = link.open_objects.filter(Q(status="pending")).order_by("since").first()
            assert link.oldest_at == (oldest.since if oldest else None)


@contextmanager
def world(lm: Deployment) -> Iterator[World]:
    """A world with the wiring pointed at it."""
    made = World(lm)
    real = clock.now

    def now() -> datetime:
        return real() + made.passed

    with (
        mock.patch("deployment.wiring.replication_jobs._store", lambda region, workers: made.stores[region]),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", lambda region: made.stores[region]),
        mock.patch("deployment.wiring.replication_jobs.quick_place_of", quick_place_of),
        mock.patch("replication.preflight.checks.probe", probe),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda one, other: one == other),
        mock.patch("adapters.s3.writes.pause_before", lambda attempt, error: 0.0),
        mock.patch("db.clock.now", now),
    ):
        yield made


def silent(*kinds: str, bucket: str = "") -> Callable[[str, str, str], None]:
    """A store that doesn't answer requests of these kinds; of none: any."""

    def before(method: str, name: str, key: str) -> None:
        if (not kinds or method in kinds) and (not bucket or name == bucket):
            raise Unreachable("nobody answers")

    return before


def refusing(error: LakeMirrorError, *kinds: str, keys: str = "") -> Callable[[str, str, str], None]:
    """A store that refuses requests of these kinds, of keys that begin so."""

    def before(method: str, name: str, key: str) -> None:
        if method in kinds and key.startswith(keys):
            raise error

    return before


__all__ = ["AWAY", "FAR", "HOME", "Store", "World", "etag", "refusing", "silent", "world"]
