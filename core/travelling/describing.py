"""What goes with an object's bytes: headers, tags, a lock. What two stores tell of them, compared. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.header import decode_header, make_header
from email.utils import parsedate_to_datetime
from enum import StrEnum
from hashlib import sha256
from urllib.parse import quote

from core.errors import Invalid

META = "x-amz-meta-"
OWN_META = f"{META}lakemirror-"
"""What LakeMirror writes to its copies itself: no difference, and nothing that travels."""
CONTENT_HEADERS = (
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
)
TAGGING, TAG_COUNT, STORAGE_CLASS = "x-amz-tagging", "x-amz-tagging-count", "x-amz-storage-class"
LOCK_MODE, LOCK_UNTIL, LOCK_HOLD = (f"x-amz-object-lock-{name}" for name in ("mode", "retain-until-date", "legal-hold"))
COMPLIANCE = "COMPLIANCE"
SAME = "same"
"""As a storage class: the source's."""
MOST_TAGS, LONGEST_TAG_KEY, LONGEST_TAG_VALUE = 10, 128, 256
LONGEST_TAGGING = 4096
"""Bytes of a header with tags: stores take 8 KiB of headers in all. More tags are written by a call of their own."""
LEAST_LEFT = timedelta(minutes=1)
"""A retention that ends sooner counts as over: a store refuses a time that has passed by its own clock."""
_SYSTEM = "aws:"
_PLAIN_TYPES = frozenset({"", "binary/octet-stream", "application/octet-stream"})
_CLASS = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Tags = Mapping[str, str]


class Metadata(StrEnum):
    """What of an object travels. All: tags, retention, legal hold, and later changes of these and of its headers.
    Content: its bytes, with the headers and user metadata that they had when they were copied."""

    ALL = "all"
    CONTENT = "content"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a rule says about it: whether all travels, which tags an object needs to be copied, and the storage class of
    copies."""

    metadata: Metadata = Metadata.CONTENT
    tags: Tags = field(default_factory=dict)
    storage_class: str = ""

    @property
    def all(self) -> bool:
        """Whether tags, locks and later changes travel."""
        return self.metadata is Metadata.ALL

    @property
    def plain(self) -> bool:
        """Whether nothing goes with the bytes but what the store says of them, and every object is copied."""
        return not (self.all or self.tags or self.storage_class)


@dataclass(frozen=True, slots=True)
class Lock:
    """How an object is protected: retention in a mode until a time, and a legal hold; None: nobody ever set or
    removed one."""

    mode: str = ""
    until: datetime | None = None
    hold: bool | None = None

    def at(self, now: datetime) -> Lock:
        """What of it is in force: a retention that is over, or just about to be, is none."""
        if self.mode and self.until is not None and self.until > now + LEAST_LEFT:
            return self
        return Lock(hold=self.hold)

    @property
    def protects(self) -> bool:
        """Whether there is anything to lose."""
        return bool(self.hold) or self.until is not None

    @property
    def headers(self) -> dict[str, str]:
        """As a write is told of it."""
        told = {LOCK_HOLD: "ON"} if self.hold else {}
        return told if self.until is None else {**told, LOCK_MODE: self.mode, LOCK_UNTIL: timestamp(self.until)}


NO_LOCK = Lock()


@dataclass(frozen=True, slots=True)
class Description:
    """An object without its bytes. `headers`: content headers and user metadata; `tags`: None where only their number
    is known."""

    headers: Mapping[str, str]
    tag_count: int = 0
    tags: Tags | None = None
    lock: Lock = NO_LOCK
    storage_class: str = ""
    restore: str = ""
    """How far it is back from an archive, in the store's words."""

    @property
    def digest(self) -> str:
        """Names what is described: another description has another one."""
        lock = (self.lock.mode, timestamp(self.lock.until) if self.lock.until else "", self.lock.hold)
        tags = sorted(self.tags.items()) if self.tags is not None else self.tag_count
        text = json.dumps([sorted(compared(self.headers).items()), tags, lock, self.restore])
        return sha256(text.encode()).hexdigest()[:32]


def description_of(told: Mapping[str, str], tags: Tags | None = None) -> Description:
    """What an answer to HEAD or GET tells: its headers by their names in small letters."""
    headers = {name: value for name, value in told.items() if name in CONTENT_HEADERS or name.startswith(META)}
    count = told.get(TAG_COUNT, "")
    storage_class, hold = told.get(STORAGE_CLASS, ""), told.get(LOCK_HOLD, "").upper()
    return Description(
        headers,
        int(count) if count.isdigit() else 0,
        tags,
        Lock(told.get(LOCK_MODE, ""), moment(told.get(LOCK_UNTIL, "")), hold == "ON" if hold else None),
        "" if storage_class == "STANDARD" else storage_class,
        told.get("x-amz-restore", ""),
    )


def differences(own: Description, found: Description, now: datetime) -> frozenset[str]:
    """In what a target's object is described otherwise than the source's: `headers`, `tags`, `lock`. Both with their
    tags."""
    differ = {
        "headers": compared(own.headers) != compared(found.headers),
        "tags": dict(own.tags or {}) != dict(found.tags or {}),
        "lock": not same_lock(own.lock.at(now), found.lock.at(now)),
    }
    return frozenset(name for name, other in differ.items() if other)


def compared(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers in the form in which two stores' may be compared: without those of our own, and whichever way a store
    writes what means the same."""
    found = {name: _plain(name, value) for name, value in headers.items() if not name.startswith(OWN_META)}
    return {name: value for name, value in found.items() if value or name.startswith(META)}


def _plain(name: str, value: str) -> str:
    value = " ".join(value.split())
    if name.startswith(META):
        return _decoded(value)
    if name == "content-type":
        return "" if value.lower() in _PLAIN_TYPES else value
    if name == "content-encoding":
        codings = [coding.strip() for coding in value.split(",")]
        return ",".join(coding for coding in codings if coding and coding.lower() != "aws-chunked")
    if name == "expires":
        return _http_date(value)
    return value


def _decoded(value: str) -> str:
    """Stores write what is not ASCII as it is, or as mail does (RFC 2047)."""
    if "=?" not in value:
        return value
    try:
        return str(make_header(decode_header(value)))
    except (LookupError, ValueError):
        return value


def _http_date(value: str) -> str:
    try:
        return parsedate_to_datetime(value).isoformat()
    except ValueError:
        return value


# --- locks ------------------------------------------------------------------------------------------------------------


class LockStep(StrEnum):
    """What makes a target's lock that of the source. Shorten: or change its mode, where that allows it to whoever has
    the right for that. Forbidden: nobody may."""

    NONE = "none"
    SET = "set"
    SHORTEN = "shorten"
    FORBIDDEN = "forbidden"


def retention_step(own: Lock, there: Lock) -> LockStep:
    """Both are locks in force. A target that protects what the source does not, by a rule of its bucket say, keeps its
    retention."""
    if own.until is None or (own.mode == there.mode and own.until == there.until):
        return LockStep.NONE
    if there.until is None or (own.until >= there.until and own.mode == there.mode):
        return LockStep.SET
    return LockStep.FORBIDDEN if there.mode == COMPLIANCE else LockStep.SHORTEN


def same_lock(own: Lock, there: Lock) -> bool:
    """Whether nothing has to be done; both are locks in force."""
    return not hold_differs(own, there) and retention_step(own, there) is LockStep.NONE


def hold_differs(own: Lock, there: Lock) -> bool:
    """Whether the legal hold has to be set or removed. One that somebody set at the target stays where the source never
    had any."""
    return own.hold is not None and own.hold != bool(there.hold)


def moment(text: str) -> datetime | None:
    """A time as stores tell it of a lock, to the second: some write nine digits behind it. None for what is none."""
    try:
        at = datetime.fromisoformat(re.sub(r"\.\d+", "", text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def timestamp(at: datetime) -> str:
    """The same as a store is told it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- tags -------------------------------------------------------------------------------------------------------------


def travelling(tags: Tags) -> dict[str, str]:
    """Tags without those of the store's own services, which nobody else may set."""
    return {key: value for key, value in tags.items() if not key.startswith(_SYSTEM)}


def tagging(tags: Tags) -> str:
    """Tags as a header holds them."""
    return "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in sorted(tags.items()))


def matches(wanted: Tags, tags: Tags) -> bool:
    """Whether an object has all the tags that are wanted."""
    return all(tags.get(key) == value for key, value in wanted.items())


def check_tags(tags: Mapping[str, object]) -> dict[str, str]:
    """The tags of a filter. Raises Invalid for what no object could have."""
    if len(tags) > MOST_TAGS:
        raise Invalid(f"an object has {MOST_TAGS} tags at most", field="tags", hint="Name fewer")
    return {key: _checked_tag(key, value) for key, value in tags.items()}


def _checked_tag(key: str, value: object) -> str:
    shown = key[:40]
    if not key or not isinstance(value, str) or not value:
        hint = 'Give each tag a key and a value, like {"team": "sales"}'
        raise Invalid(f"the tag '{shown}' has no value" if key else "a tag has no key", field="tags", hint=hint)
    if len(key) > LONGEST_TAG_KEY:
        raise Invalid(f"a tag's key has {LONGEST_TAG_KEY} characters at most: '{shown}'…", field="tags")
    if len(value) > LONGEST_TAG_VALUE:
        raise Invalid(f"a tag's value has {LONGEST_TAG_VALUE} characters at most: that of '{shown}'", field="tags")
    if not (key.isprintable() and value.isprintable()):
        raise Invalid(f"the tag '{shown}' has a character that no tag may have".replace(key, repr(key)), field="tags")
    return value


def check_storage_class(name: str) -> str:
    """A storage class, by the name that stores have for it. Raises Invalid for what can be none."""
    if name and not _CLASS.fullmatch(name):
        hint = "Leave it empty for the store's default, or use same, or a name like STANDARD_IA"
        raise Invalid(f"'{name[:80]}' is not a storage class", field="storage_class", hint=hint)
    return name


def check_metadata(name: str) -> str:
    """One of Metadata. Raises Invalid."""
    if name not in set(Metadata):
        raise Invalid(f"'{name[:40]}' is not known", field="metadata", hint="Use all or content")
    return name
