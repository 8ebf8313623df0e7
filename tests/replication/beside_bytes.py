"""What a store in memory keeps beside bytes: tags, retention, legal holds, in the way in which S3 is asked for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree

from core.errors import Invalid, NotFound
from core.travelling.describing import LOCK_HOLD, LOCK_MODE, LOCK_UNTIL, TAG_COUNT, TAGGING
from tests.exports.memory_s3 import Answer, MemoryS3

KINDS = ("tagging", "retention", "legal-hold", "object-lock")
LOCKS = (LOCK_MODE, LOCK_UNTIL, LOCK_HOLD)


class BesideBytes(MemoryS3):
    """A MemoryS3 whose objects have tags and locks. `locking`: buckets with Object Lock; `loses_locks`: a change of
    tags takes the retention away, as at a replica of MinIO's; `drops_tags`: those that come with bytes or headers are
    not kept, as Ceph does with some."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: dict[tuple[str, str], dict[str, str]] = {}
        self.locks: dict[tuple[str, str], dict[str, str]] = {}
        self.locking: set[str] = set()
        self.loses_locks = self.drops_tags = False

    def send(
        self, method: str, url: str, doing: str, headers: Any = (), body: bytes = b"", *args: Any, **more: Any
    ) -> Any:
        """As MemoryS3, and what is asked of an object's tags and locks."""
        parts = urlsplit(url)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        kind = next((kind for kind in KINDS if kind in asked), "")
        if not kind:
            return super().send(method, url, doing, headers, body, *args, **more)
        name, _, key = unquote(parts.path).lstrip("/").partition("/")
        with self._one:
            self._count()
            self.asked[f"{method} {kind}"] += 1
            self.before(f"{method} {kind}", name, key)
            answer = self._beside(method, kind, name, key, dict(headers or {}), body)
            self.after(f"{method} {kind}", name, key)
            return answer

    def _beside(self, method: str, kind: str, name: str, key: str, given: Mapping[str, str], body: bytes) -> Answer:
        bucket = self._bucket(name)
        if kind == "object-lock":
            if name not in self.locking:
                error = NotFound("404 ObjectLockConfigurationNotFoundError")
                error.store_code = "ObjectLockConfigurationNotFoundError"
                raise error
            told = b"<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>"
            return Answer(told, {})
        if key not in bucket:
            raise NotFound(f"404 NoSuchKey: {key}")
        if kind == "tagging":
            return self._tagging(method, (name, key), body)
        if name not in self.locking:
            raise Invalid("400 InvalidRequest: Bucket is missing Object Lock Configuration")
        return self._locked(kind, (name, key), given, body)

    def _locked(self, kind: str, at: tuple[str, str], given: Mapping[str, str], body: bytes) -> Answer:
        texts = {one.tag.rpartition("}")[2]: one.text or "" for one in ElementTree.fromstring(body).iter()}
        lock = self.locks.setdefault(at, {})
        if kind == "legal-hold":
            lock[LOCK_HOLD] = texts["Status"]
        else:
            self._expect_retention(lock, texts["Mode"], texts["RetainUntilDate"], given)
            lock |= {LOCK_MODE: texts["Mode"], LOCK_UNTIL: texts["RetainUntilDate"]}
        return Answer(b"", {})

    def _expect_retention(self, lock: Mapping[str, str], mode: str, until: str, given: Mapping[str, str]) -> None:
        less = until < lock.get(LOCK_UNTIL, "") or mode != lock.get(LOCK_MODE, mode)
        bypass = lock.get(LOCK_MODE) == "GOVERNANCE" and given.get("x-amz-bypass-governance-retention") == "true"
        if less and not bypass:
            raise Invalid("400 InvalidRequest: Object is WORM protected and cannot be overwritten")

    def _tagging(self, method: str, at: tuple[str, str], body: bytes) -> Answer:
        if method == "GET":
            items = "".join(f"<Tag><Key>{k}</Key><Value>{v}</Value></Tag>" for k, v in self.tags.get(at, {}).items())
            return Answer(f"<Tagging><TagSet>{items}</TagSet></Tagging>".encode(), {})
        found = (
            [one.text or "" for one in ElementTree.fromstring(body).iter() if one.tag.endswith(("Key", "Value"))]
            if body
            else []
        )
        self.tags[at] = dict(zip(found[::2], found[1::2], strict=True))
        if self.loses_locks and at in self.locks:
            del self.locks[at]
        return Answer(b"", {})

    def beside(self, name: str, key: str) -> dict[str, str]:
        """What HEAD and GET tell of tags and lock."""
        tags = self.tags.get((name, key))
        return ({TAG_COUNT: str(len(tags))} if tags else {}) | self.locks.get((name, key), {})

    def keep(self, name: str, key: str, given: Mapping[str, str]) -> None:
        """What a write says of them; what was there before is gone."""
        locks = {header: given[header] for header in LOCKS if header in given}
        if locks and name not in self.locking:
            raise Invalid("400 InvalidRequest: Bucket is missing Object Lock Configuration")
        told = "" if self.drops_tags else given.get(TAGGING, "")
        self.tags[name, key] = dict(parse_qsl(told, keep_blank_values=True))
        self.locks[name, key] = locks
