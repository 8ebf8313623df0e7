"""Stores in memory that keep versions: at a plain one everything new is the latest, an exact one is as MinIO."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlsplit
from uuid import UUID
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from adapters.s3.fast_store import ListedPage
from adapters.s3.store import split_uri
from core.errors import Conflict, Denied, Invalid, NotFound, Unreachable
from core.replicating.eligible import is_own
from core.travelling.describing import LOCK_HOLD, LOCK_UNTIL, STORAGE_CLASS, TAG_COUNT, TAGGING, timestamp
from db import clock
from replication.models import Link, Rule
from tests.exports.memory_s3 import Answer, GivenUp, etag
from tests.mirrors.harness import Deployment
from tests.replication.beside_bytes import KINDS, LOCKS
from tests.replication.world import AWAY, FAR, HOME, Asked, Store, World, world


@dataclass
class Kept:
    """A version, or a marker."""

    id: str
    data: bytes = b""
    marker: bool = False
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    told: Mapping[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    lock: dict[str, str] = field(default_factory=dict)

    @property
    def beside(self) -> dict[str, str]:
        """What HEAD and GET tell of tags and lock."""
        return ({TAG_COUNT: str(len(self.tags))} if self.tags else {}) | self.lock

    @property
    def protected(self) -> bool:
        """Whether it can't be deleted now."""
        return self.lock.get(LOCK_HOLD) == "ON" or self.lock.get(LOCK_UNTIL, "") > timestamp(clock.now())

    @property
    def listed(self) -> str:
        """Its time, as listings have it."""
        return self.at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.at.microsecond // 1000:03}Z"


Bucket = dict[str, list[Kept]]


class VersionedStore(Store):
    """Chains of versions, the oldest first. `exact`: it takes replicas under their ids. `status`: of versioning."""

    page_size = 3

    def __init__(self, *, exact: bool = False, number: int = 0) -> None:
        super().__init__()
        self.exact, self.number, self.made = exact, number << 64, 0
        self.chains: dict[str, Bucket] = {name: {} for name in (*self.buckets, "other", "three")}
        self.status = dict.fromkeys(self.chains, "Enabled")
        self.last_at = datetime(2000, 1, 1, tzinfo=UTC)
        self.etags: Callable[[bytes], str] = etag
        self.asked = Asked(self)
        self.unlisted: set[str] = set()
        """Keys that it has, and lists nowhere."""

    def has_already(self, bucket: str, key: str, data: bytes) -> None:
        self.add(bucket, key, data)

    def shown(self, bucket: str) -> dict[str, list[tuple[bytes | None, bool]]]:
        """What somebody sees of each chain: the bytes, None for a marker."""
        return {
            key: [(None if one.marker else one.data, one.marker) for one in chain] for key, chain in self._full(bucket)
        }

    def ids(self, bucket: str) -> dict[str, list[tuple[str, str, bool, str]]]:
        """Ids, content, markers and times."""
        return {key: [(v.id, v.data.hex(), v.marker, v.listed) for v in chain] for key, chain in self._full(bucket)}

    def _full(self, bucket: str) -> list[tuple[str, list[Kept]]]:
        return [(key, chain) for key, chain in sorted(self.chains[bucket].items()) if chain and not is_own(key)]

    def add(self, bucket: str, key: str, data: bytes | None, **told: Any) -> Kept:
        """A version that is the latest from now on; None: a marker."""
        self.made += 1
        self.last_at = max(clock.now(), self.last_at + timedelta(milliseconds=1))
        given = {"id": str(UUID(int=self.number + self.made)), "at": self.last_at} | told
        one = Kept(data=data or b"", marker=data is None, **given)
        self.chains[bucket].setdefault(key, []).append(one)
        return one

    # --- requests -----------------------------------------------------------------------------------------------------

    def send(
        self,
        method: str,
        url: str,
        doing: str,
        headers: Any = (),
        body: bytes = b"",
        read_seconds: float = 0,
        *,
        unsigned: bool = False,
    ) -> Any:
        """Carry out a request of the adapters."""
        parts = urlsplit(url)
        if method == "GET" and parts.path in ("", "/"):
            return super().send(method, url, doing)
        name, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        kind = "VERSIONS" if "versions" in query else "VERSIONING" if "versioning" in query else method
        beside = next((f"{method} {one}" for one in KINDS if one in query), "")
        given = {name.lower(): value for name, value in dict(headers).items()}
        with self._one:
            self._count()
            self.asked[beside or kind] += 1
            if name not in self.chains:
                raise NotFound(f"404 NoSuchBucket: {name}")
            do = partial(getattr(self, f"_v_{kind.lower()}"), name, key, query, given, body)
            do = partial(self._v_beside, beside, name, key, query, given, body) if beside else do
            try:
                self.before(beside or kind, name, key)
            except Unreachable:
                if method in ("PUT", "DELETE"):
                    self.given_up.append(GivenUp(key, do))
                raise
            answer = do()
            self.after(beside or kind, name, key)
            return answer

    def _v_beside(self, asked: str, bucket: str, key: str, query: Any, given: Any, body: bytes) -> Answer:
        """Tags and locks of a version, the latest unless told."""
        method, _, kind = asked.partition(" ")
        if kind == "object-lock":
            return self._beside(method, kind, bucket, key, given, body)
        one = self._found(bucket, key, query.get("versionId", ""))
        at = bucket, one.id
        self.tags[at], self.locks[at] = one.tags, one.lock
        if kind == "tagging":
            answer = self._tagging(method, at, body)
        else:
            if bucket not in self.locking:
                raise Invalid("400 InvalidRequest: Bucket is missing Object Lock Configuration")
            answer = self._locked(kind, at, given, body)
        one.tags, one.lock = self.tags.pop(at), self.locks.pop(at, {})
        return answer

    def _found(self, bucket: str, key: str, version: str) -> Kept:
        chain = self.chains[bucket].get(key, [])
        found = [one for one in chain if one.id == version] if version else chain[-1:]
        if not found:
            raise NotFound("404 NoSuchVersion")
        if found[0].marker:
            raise Invalid("405 MethodNotAllowed") if version else NotFound("404 NoSuchKey")
        return found[0]

    def _v_head(self, bucket: str, key: str, query: Any, given: Any, body: bytes) -> Answer:
        if not key:
            return Answer(b"", {})
        one = self._found(bucket, key, query.get("versionId", ""))
        own = {"etag": f'"{self.etags(one.data)}"', "content-length": str(len(one.data)), "x-amz-version-id": one.id}
        return Answer(b"", {**one.told, **one.beside, **own, "last-modified": format_datetime(one.at, usegmt=True)})

    def _v_get(self, bucket: str, key: str, query: Any, given: Any, body: bytes) -> Answer:
        one = self._found(bucket, key, query.get("versionId", ""))
        if (match := given.get("if-match")) and match.strip('"') != self.etags(one.data):
            raise Conflict("412 PreconditionFailed")
        data = one.data
        if "range" in given:
            start, _, stop = given["range"].removeprefix("bytes=").partition("-")
            if int(start) >= len(data):
                raise Invalid("416 InvalidRange")
            data = data[int(start) : int(stop) + 1]
        return Answer(data, self._v_head(bucket, key, query, given, body).headers)

    def _is_replica(self, query: Mapping[str, str], given: Mapping[str, str]) -> bool:
        return self.exact and "versionId" in query and "x-minio-source-replication-request" in given

    def _v_put(self, bucket: str, key: str, query: Any, given: Any, body: bytes) -> Answer:
        kept = ("x-amz-meta-", "content-type", STORAGE_CLASS)
        told: dict[str, Any] = {"told": {name: value for name, value in given.items() if name.startswith(kept)}}
        told |= {"tags": {} if self.drops_tags else dict(parse_qsl(given.get(TAGGING, ""), keep_blank_values=True))}
        told |= {"lock": {name: given[name] for name in LOCKS if name in given}}
        if told["lock"] and (bucket not in self.locking or "content-md5" not in given):
            raise Invalid("400 InvalidRequest: no Object Lock in this bucket, or no Content-MD5")
        if self._is_replica(query, given):
            return self._replica(bucket, key, query["versionId"], given, body, told)
        if self.status[bucket] != "Enabled" or (self.exact and key.endswith("/")):
            kept = [one for one in self.chains[bucket].get(key, []) if one.id != "null"]
            self.chains[bucket][key] = kept
            self.add(bucket, key, body, id="null", **told)
            return Answer(b"", {"etag": f'"{self.etags(body)}"'})
        self.written.append((bucket, key, body))
        one = self.add(bucket, key, body, **told)
        return Answer(b"", {"etag": f'"{self.etags(body)}"', "x-amz-version-id": one.id})

    def _replica(self, bucket: str, key: str, version: str, given: Any, body: bytes, told: Any) -> Answer:
        chain = self.chains[bucket].setdefault(key, [])
        if given.get("if-none-match") == "*" and any(one.id == version for one in chain):
            raise Conflict("412 PreconditionFailed")
        self.chains[bucket][key] = [one for one in chain if one.id != version]
        self._put_in(bucket, key, Kept(version, body, at=_time(given), **told))
        return Answer(b"", {"etag": f'"{self.etags(body)}"', "x-amz-version-id": version})

    def _put_in(self, bucket: str, key: str, one: Kept) -> None:
        self.written.append((bucket, key, one.data))
        chain = self.chains[bucket].setdefault(key, [])
        chain.append(one)
        chain.sort(key=lambda each: each.at)

    def _v_delete(self, bucket: str, key: str, query: Any, given: Any, body: bytes) -> Answer:
        chain = self.chains[bucket].setdefault(key, [])
        if version := query.get("versionId"):
            was = [one for one in chain if one.id == version]
            if was and was[0].protected:
                raise Denied("403 AccessDenied: it is WORM protected")
            self.chains[bucket][key] = [one for one in chain if one.id != version]
            if not was and self._is_replica(query, given) and "x-minio-source-deletemarker" in given:
                self._put_in(bucket, key, Kept(version, marker=True, at=_time(given)))
                return Answer(b"", {"x-amz-delete-marker": "true", "x-amz-version-id": version}, 204)
            return Answer(b"", {}, 204)
        if self.status[bucket] != "Enabled" or key.endswith("/"):
            self.chains[bucket][key] = [one for one in chain if one.id != "null"]
            return Answer(b"", {}, 204)
        if not chain:
            return Answer(b"", {}, 204)
        one = self.add(bucket, key, None)
        return Answer(b"", {"x-amz-delete-marker": "true", "x-amz-version-id": one.id}, 204)

    def _v_post(self, bucket: str, key: str, query: Any, given: Any, body: bytes) -> Answer:
        """Deletes of several keys; it knows no uploads in parts."""
        if "delete" not in query:
            raise Invalid("501 NotImplemented")
        for element in ElementTree.fromstring(body).iter():
            if element.tag.endswith("Key"):
                self._v_delete(bucket, element.text or "", {}, {}, b"")
        return Answer(b"<DeleteResult></DeleteResult>", {})

    def _v_versioning(self, bucket: str, key: str, query: Any, given: Any, body: bytes) -> Answer:
        status = f"<Status>{self.status[bucket]}</Status>" if self.status[bucket] else ""
        return Answer(f"<VersioningConfiguration>{status}</VersioningConfiguration>".encode(), {})

    def _v_versions(self, bucket: str, key: str, query: Any, given: Any, body: bytes) -> Answer:
        rows = [(name, one, one is chain[-1]) for name, chain in self._full(bucket) for one in reversed(chain)]
        rows = [row for row in rows if row[0].startswith(query["prefix"]) and row[0] not in self.unlisted]
        after = query.get("key-marker", "")
        if version := query.get("version-id-marker"):
            at = next((at for at, row in enumerate(rows) if row[0] == after and row[1].id == version), None)
            rows = rows[at + 1 :] if at is not None else [row for row in rows if row[0] > after]
        elif after:
            rows = [row for row in rows if row[0] > after]
        some = rows[: self.page_size]
        xml = "".join(self._row_xml(*row) for row in some)
        if len(rows) > len(some):
            name, one, _ = some[-1]
            xml += f"<NextKeyMarker>{quote(name)}</NextKeyMarker><NextVersionIdMarker>{one.id}</NextVersionIdMarker>"
        more = str(len(rows) > len(some)).lower()
        told = f"<IsTruncated>{more}</IsTruncated><EncodingType>url</EncodingType>{xml}"
        return Answer(f"<ListVersionsResult>{told}</ListVersionsResult>".encode(), {})

    def _row_xml(self, name: str, one: Kept, latest: bool) -> str:
        tag = "DeleteMarker" if one.marker else "Version"
        own = "" if one.marker else f"<ETag>&quot;{self.etags(one.data)}&quot;</ETag><Size>{len(one.data)}</Size>"
        told = f"<VersionId>{one.id}</VersionId><IsLatest>{str(latest).lower()}</IsLatest>"
        key = f"<Key>{escape(quote(name))}</Key><LastModified>{one.listed}</LastModified>"
        return f"<{tag}>{key}{told}{own}</{tag}>"

    def page(self, prefix_uri: str, after: str = "", *, dated: bool = False) -> ListedPage:
        """What readers see."""
        name, prefix = split_uri(prefix_uri)
        self.before("LIST", name, prefix)
        all_keys = sorted(self.chains[name].items())
        seen = {key: chain[-1] for key, chain in all_keys if chain and not chain[-1].marker}
        keys = [key for key in seen if key.startswith(prefix) and key > after][:3]
        sizes, etags = [len(seen[key].data) for key in keys], [self.etags(seen[key].data) for key in keys]
        return ListedPage(keys, sizes, etags, [""] * len(keys), len(keys) == 3, [seen[key].listed for key in keys])


def _time(given: Mapping[str, str]) -> datetime:
    return datetime.fromisoformat(given["x-minio-source-mtime"])


class VersionWorld(World):
    """A world whose buckets keep versions. The store of `far` is an exact one."""

    home: VersionedStore
    away: VersionedStore
    far: VersionedStore

    def __init__(self, lm: Deployment) -> None:
        super().__init__(lm)
        made = {HOME: (True, 1), AWAY: (False, 2), FAR: (True, 3)}
        self.stores = {region: VersionedStore(exact=exact, number=number) for region, (exact, number) in made.items()}

    def put(self, key: str, data: bytes = b"data", bucket: str = "src") -> None:
        self.home.add(bucket, key, data)

    def drop(self, key: str) -> None:
        """A delete marker at the source."""
        self.home.add("src", key, None)

    def rule(self, *targets: tuple[str, str], name: str = "r", uri: str = "s3://src", **more: Any) -> Rule:
        """A rule of all versions; a link to `far` is exact."""
        rule = super().rule(*targets, name=name, uri=uri, **{"versions": "all", "delete_percent": 100} | more)
        for link in rule.links.all():
            Link.objects.filter(pk=link.pk).update(exact=link.region == FAR, exact_at=clock.now())
        return rule

    def look(self) -> None:
        """Everything is compared, and what lacks is brought."""
        Rule.objects.update(scan_wanted=True)
        self.work(2)


@contextmanager
def version_world(lm: Deployment) -> Iterator[VersionWorld]:
    """Such a world with the wiring pointed at it."""
    with mock.patch("tests.replication.world.World", VersionWorld), world(lm) as made:
        assert isinstance(made, VersionWorld)
        yield made
