"""What is brought: the source's object as it tells of it, and errors with the side that they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import md5

import urllib3

from adapters.s3.store import NO_HEADERS, split_uri, stored
from adapters.s3.unsigned import md5_header
from core.bringing import Overwritten, Side, Unbrought
from core.errors import LakeMirrorError, RemoteFailure
from core.mirroring.object_check import is_md5
from core.proof_of_parts import PROOF_HEADER
from core.replicating.stamps import STAMP_HEADER
from core.travelling.describing import TAGGING
from core.types import ObjectInfo

_KEPT = ("content-type", "cache-control", "content-disposition", "content-encoding", "content-language", "expires")
_META = "x-amz-meta-"
EMPTY_MD5 = md5_header(md5(b"", usedforsecurity=False).hexdigest())


@dataclass(frozen=True, slots=True)
class Original:
    """The source's object: what HEAD says, and the headers that its copy gets. `more`: those of them that a store that
    copies within itself does not take along by itself; `told`: all that the source's store said; `when`: headers that
    say under which condition it is written whole; `stamped`: the copy's metadata is not the source's."""

    info: ObjectInfo
    headers: Mapping[str, str]
    more: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)
    when: Mapping[str, str] = field(default_factory=dict)
    stamped: bool = False

    def packed(self, more: Mapping[str, str], apart: Mapping[str, str] = NO_HEADERS) -> Original:
        """With more headers for its copy; those `apart` are for copies whose bytes pass here alone."""
        return replace(self, headers={**self.headers, **more, **apart}, more=more)

    def with_stamp(self, stamp: str, when: Mapping[str, str]) -> Original:
        """With a stamp in its copy's metadata, which is written `when` the condition of these headers holds."""
        return replace(self, headers={**self.headers, STAMP_HEADER: stamp}, when=when, stamped=True)

    @property
    def for_copy(self) -> dict[str, str]:
        """The headers for a copy within a store, which has an empty body."""
        more = {**self.more, "content-md5": EMPTY_MD5} if self.more else {}
        if not self.stamped:
            return {**more, "x-amz-metadata-directive": "COPY"}
        kept = {name: value for name, value in self.headers.items() if name != TAGGING}  # it takes tags along
        return {**kept, **more, "x-amz-metadata-directive": "REPLACE"}

    def for_body(self, digest: str) -> Mapping[str, str]:
        """The headers for a body with this MD5: S3 takes no lock without it."""
        whole = {**self.headers, **self.when}
        return {**whole, "content-md5": md5_header(digest)} if self.more else whole


Pack = Callable[[Original], Original]
"""Adds to an original, before anything of it is written, what else shall go with it. May raise Unbrought."""


def as_it_is(original: Original) -> Original:
    """Nothing goes with it but headers and metadata."""
    return original


@contextmanager
def telling(side: Side) -> Iterator[None]:
    """A store's errors come with the side that it is on, as Unbrought."""
    try:
        yield
    except LakeMirrorError as error:
        raise Unbrought(side, error) from error


def original_of(source: str, answer: urllib3.BaseHTTPResponse, etag: str = "") -> Original:
    """Raises Unbrought where it has to have an ETag and has another one."""
    told = {name.lower(): as_sent(value) for name, value in answer.headers.items()}
    kept = {name: value for name, value in told.items() if name in _KEPT or name.startswith(_META)}
    for name in (PROOF_HEADER, STAMP_HEADER):  # of another place
        kept.pop(name, None)
    original = Original(stored(split_uri(source)[1], told), kept, told=told)
    if etag and original.info.etag != etag:
        raise Unbrought(Side.SOURCE, Overwritten(f"{source} was overwritten: its ETag is {original.info.etag}"))
    return original


def only_new(original: Original) -> Original:
    """The same, to be written only where nothing is, by a store that looks: Conflict where there is something."""
    return replace(original, when={"if-none-match": "*"})


def md5_of(data: bytes) -> str:
    return md5(data, usedforsecurity=False).hexdigest()


def expected_md5(where: str, data: bytes, original: Original) -> str:
    """The MD5 of bytes that were read; Unbrought where it is not the one that the source tells."""
    digest = md5_of(data)
    if is_md5(original.info) and digest != original.info.etag:
        wrong = f"{where} returned bytes with the MD5 {digest} for {original.info.key}"
        raise Unbrought(Side.SOURCE, RemoteFailure(f"{wrong}, whose ETag is {original.info.etag}"))
    return digest


def as_sent(value: str) -> str:
    """A header's text; the client takes its bytes for Latin-1."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value
