"""What is brought: the source's object as it tells of it, and errors with the side that they came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import md5

import urllib3

from adapters.s3.store import split_uri, stored
from core.bringing import Overwritten, Side, Unbrought
from core.errors import LakeMirrorError, RemoteFailure
from core.mirroring.object_check import is_md5
from core.proof_of_parts import PROOF_HEADER
from core.types import ObjectInfo

_KEPT = ("content-type", "cache-control", "content-disposition", "content-encoding", "content-language", "expires")
_META = "x-amz-meta-"


@dataclass(frozen=True, slots=True)
class Original:
    """The source's object: what HEAD says, and the headers that its copy gets."""

    info: ObjectInfo
    headers: Mapping[str, str]


@contextmanager
def telling(side: Side) -> Iterator[None]:
    try:
        yield
    except LakeMirrorError as error:
        raise Unbrought(side, error) from error


def original_of(source: str, answer: urllib3.BaseHTTPResponse, etag: str = "") -> Original:
    """Raises Unbrought where it has to have an ETag and has another one."""
    told = {name.lower(): _as_sent(value) for name, value in answer.headers.items()}
    kept = {name: value for name, value in told.items() if name in _KEPT or name.startswith(_META)}
    kept.pop(PROOF_HEADER, None)  # of another place
    original = Original(stored(split_uri(source)[1], told), kept)
    if etag and original.info.etag != etag:
        raise Unbrought(Side.SOURCE, Overwritten(f"{source} was overwritten: its ETag is {original.info.etag}"))
    return original


def only_new(original: Original) -> Original:
    """The same, to be written only where nothing is, by a store that looks: Conflict where there is something."""
    return replace(original, headers={**original.headers, "if-none-match": "*"})


def md5_of(data: bytes) -> str:
    return md5(data, usedforsecurity=False).hexdigest()


def expected_md5(where: str, data: bytes, original: Original) -> str:
    """The MD5 of bytes that were read; Unbrought where it is not the one that the source tells."""
    digest = md5_of(data)
    if is_md5(original.info) and digest != original.info.etag:
        wrong = f"{where} returned bytes with the MD5 {digest} for {original.info.key}"
        raise Unbrought(Side.SOURCE, RemoteFailure(f"{wrong}, whose ETag is {original.info.etag}"))
    return digest


def _as_sent(value: str) -> str:
    """A header's text; the client takes its bytes for Latin-1."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value
