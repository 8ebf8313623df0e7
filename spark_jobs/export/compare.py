"""What is at the destination already: its listing from the first to the last wanted key, read along with these.

What lies between (other people's objects, perhaps very many) is jumped over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from adapters.s3.copier import Destination
from adapters.s3.fast_store import FastObjectStore, ListedPage
from adapters.s3.store import split_uri
from core.errors import RemoteFailure
from core.types import ObjectInfo

_BEYOND = "\U0010ffff"


def listed(store: FastObjectStore, destination: Destination, keys: Sequence[bytes]) -> Mapping[bytes, ObjectInfo]:
    """What the listing shows of these keys, which ascend. Raises what the store raises."""
    beginning = split_uri(destination.prefix)[1]
    wanted = [beginning + text for key in keys if (text := _text(key)) is not None]
    objects: dict[bytes, ObjectInfo] = {}
    after = ""
    while wanted:
        after = max(after, before(wanted[0]))
        page = page_after(store, destination.prefix, after)
        covered = bisect_right(wanted, page.keys[-1]) if page.more else len(wanted)
        objects |= {info.key[len(beginning) :].encode(): info for info in _shown(page, set(wanted[:covered]))}
        after, wanted = page.keys[-1] if page.keys else after, wanted[covered:]
    return objects


def page_after(store: FastObjectStore, prefix: str, after: str) -> ListedPage:
    """A page of the listing. Raises RemoteFailure for one that says there is more, and doesn't say what: what is not
    listed would be taken for not there."""
    page = store.page(prefix, after)
    if page.more and not page.keys:
        raise RemoteFailure(f"{store.where} broke off the listing of {prefix}")
    return page


def _text(key: bytes) -> str | None:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return None


def before(key: str) -> str:
    """Something that comes before a key, and after most of what comes before it."""
    code = ord(key[-1])
    if code == 0 or 0xD800 <= code - 1 < 0xE000:
        return key[:-1]
    return key[:-1] + chr(code - 1) + _BEYOND


def _shown(page: ListedPage, wanted: set[str]) -> list[ObjectInfo]:
    columns = zip(page.keys, page.sizes, page.etags, strict=True)
    return [ObjectInfo(key, size, etag) for key, size, etag in columns if key in wanted]
