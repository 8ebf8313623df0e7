"""Looking at very many objects: HEAD and LIST with a third of boto3's work per call, for executors.

boto3 knows the credentials; requests are signed and go out by urllib3 directly, and listings come back in columns.
(obstore would be faster still, but its HEAD and LIST hide the storage class, and an archived object is not readable.)
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, unquote_plus, urlencode, urlsplit
from xml.etree import ElementTree

import urllib3

from adapters.rights_of_calls import right_for_method
from adapters.s3.refusals import answer_error
from adapters.s3.store import NO_HEADERS, S3ObjectStore, own_only, split_uri, stored
from adapters.s3.unsigned import UnsignedBodies, is_protected
from core.errors import LakeMirrorError, NotFound, NotSent, RemoteFailure, Throttled, Unreachable
from core.types import ObjectInfo

R = TypeVar("R")

MOST_PAUSE_SECONDS = 5.0
NOT_MODIFIED = 304
_NO_CONNECTION = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
_XMLNS = "{http://s3.amazonaws.com/doc/2006-03-01/}"


@dataclass(frozen=True, slots=True)
class ListedPage:
    """One page of a listing in columns, keys ascending. `more`: there are keys after the last one. `modified`: when
    each was last written, as the store tells it; empty where nobody asked."""

    keys: list[str]
    sizes: list[int]
    etags: list[str]
    storage_classes: list[str]
    more: bool
    modified: list[str] = field(default_factory=list)


class FastObjectStore(S3ObjectStore):
    """An S3ObjectStore whose `head` and `list` cost less, with `heads` and `page` for bulk. Counts its requests.

    `unsigned`: which buckets take bodies that are not hashed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._parts = urlsplit(self.base_url)
        self._by_proxy = self.proxy
        self._http = self._pool_manager()
        self._lock = threading.Lock()
        self.requests = 0
        self.unsigned = UnsignedBodies(protected=is_protected(self._parts, self._by_proxy))

    def _pool_manager(self) -> urllib3.PoolManager:
        options: dict[str, Any] = {
            "maxsize": self.pool,
            "block": True,
            "retries": False,
            "timeout": urllib3.Timeout(connect=self.connect_seconds, read=self.read_seconds),
        }
        if self._parts.scheme == "https":
            options["ca_certs"] = self.ca_bundle
        return urllib3.ProxyManager(self._by_proxy, **options) if self._by_proxy else urllib3.PoolManager(**options)

    def read(self, uri: str, span: tuple[int, int] | None = None, match: str = "") -> bytes:
        """An object, or its bytes from one to before another; Conflict if its ETag is not `match` (when given)."""
        bucket, key = split_uri(uri)
        headers = {"range": f"bytes={span[0]}-{span[1] - 1}"} if span else {}
        headers |= {"if-match": f'"{match}"'} if match else {}
        return self.asked("GET", self.url(bucket, key), f"get {uri}", headers).data

    def asked(
        self, method: str, url: str, doing: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> urllib3.BaseHTTPResponse:
        """The answer to a request that changes nothing, repeated after whatever may pass by itself."""
        return self._retried(lambda: self.send(method, url, doing, headers))

    def head(self, uri: str) -> ObjectInfo | None:
        """What the store says of an object; None when it is definitely not there."""
        bucket, key = split_uri(uri)
        try:
            answer = self._retried(lambda: self.send("HEAD", self.url(bucket, key), f"head {uri}"))
        except NotFound:
            return None
        return stored(key, answer.headers)

    def heads(self, uris: Iterable[str], pool: ThreadPoolExecutor) -> Iterator[ObjectInfo | None]:
        """One answer for each address, in their order."""
        return pool.map(self.head, uris)

    def list(self, prefix_uri: str) -> Iterator[ObjectInfo]:
        """Objects below a prefix, keys ascending. A listing does not tell of restores: `head` does."""
        after, more = "", True
        while more:
            page = self.page(prefix_uri, after)
            yield from map(ObjectInfo, page.keys, page.sizes, page.etags, page.storage_classes)
            if page.more and not page.keys:
                raise RemoteFailure(f"{self.where} closed the connection while listing {prefix_uri}")
            after, more = page.keys[-1] if page.keys else "", page.more

    def page(self, prefix_uri: str, after: str = "", *, dated: bool = False) -> ListedPage:
        """Up to 1,000 objects below a prefix whose keys come after `after`; `dated`: with when they were written."""
        bucket, prefix = split_uri(prefix_uri)
        query = {"list-type": "2", "encoding-type": "url", "prefix": prefix} | ({"start-after": after} if after else {})
        url = self.url(bucket, "", query)
        doing = f"list {prefix_uri}"
        return self._retried(lambda: _page(self.send("GET", url, doing).data, doing, self.where, dated))

    def url(self, bucket: str, key: str = "", query: Mapping[str, str] = NO_HEADERS) -> str:
        """By path, unless the store is AWS's own and the bucket's name may stand in a host name."""
        scheme, host = self._parts.scheme, self._parts.netloc
        if self.path_style or self.endpoint or "." in bucket:
            base = f"{scheme}://{host}{self._parts.path.rstrip('/')}/{bucket}"
        else:
            base = f"{scheme}://{bucket}.{host}"
        query_string = f"?{urlencode(sorted(query.items()), quote_via=quote, safe='~')}" if query else ""
        return f"{base}/{quote(key, safe='/~')}{query_string}"

    def send(
        self,
        method: str,
        url: str,
        doing: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        read_seconds: float = 0.0,
        *,
        unsigned: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        """One request, once; anything but 2xx is raised, and but 304, which only who asks If-None-Match gets. NotSent:
        it certainly never got there. `unsigned`: its body is not hashed, if there is a Content-MD5."""
        self._count()
        signed = self.signed_headers(method, url, {**own_only(method), **headers}, body, unsigned=unsigned)
        encoded = {name: value.encode() for name, value in signed.items()}
        timeout = urllib3.Timeout(connect=self.connect_seconds, read=read_seconds or self.read_seconds)
        try:
            answer = self._by_path(method, url, headers=encoded, body=body or None, redirect=False, timeout=timeout)
        except urllib3.exceptions.HTTPError as error:
            kind = NotSent if isinstance(error, _NO_CONNECTION) else Unreachable
            raise kind(f"{self.where} does not answer ({doing})", hint=type(error).__name__) from error
        if 200 <= answer.status < 300 or answer.status == NOT_MODIFIED:
            return answer
        code, message = refusal(answer.data)
        code = code or answer.headers.get("x-minio-error-code", "")  # the answer to HEAD has no body to tell it
        wait, right = _seconds(answer.headers.get("retry-after")), right_for_method(method, listing="list-type=" in url)
        raise answer_error(answer.status, code, message, doing, self.where, wait, right)

    def _by_path(self, method: str, url: str, **options: Any) -> urllib3.BaseHTTPResponse:
        """By a whole URL, urllib3 would take `..` in a key for a way upwards. A proxy may be in need of one.

        What a client compressed before it was stored comes as it lies there, whatever its content-encoding says.
        """
        options["decode_content"] = False
        if self._by_proxy:
            return self._http.request(method, url, **options)
        parts = urlsplit(url)
        target = url[url.index(parts.netloc) + len(parts.netloc) :]
        return self._http.connection_from_url(f"{parts.scheme}://{parts.netloc}").urlopen(method, target, **options)

    def _retried(self, call: Callable[[], R]) -> R:
        """Tries again with growing, random pauses whatever may pass by itself."""
        for attempt in range(self.tries - 1):
            try:
                return call()
            except LakeMirrorError as error:
                if not error.retryable:
                    raise
                time.sleep(pause_before(attempt, error))
        return call()

    def _count(self) -> None:
        with self._lock:
            self.requests += 1


def pause_before(attempt: int, error: LakeMirrorError) -> float:
    """Seconds to wait after so many failures: growing, random, and as long as the store asks for."""
    retry_after = error.retry_after if isinstance(error, Throttled) else 0.0
    return min(MOST_PAUSE_SECONDS, max(retry_after, random.uniform(0.5, 1.0) * 0.2 * 4.0**attempt))


def _seconds(header: str | None) -> float:
    return float(header) if header and header.strip().isdigit() else 0.0


def refusal(body: bytes) -> tuple[str, str]:
    """(code, message) of an error's body; empty for a HEAD or for something that is no S3 error."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return "", ""
    return root.findtext("Code", ""), root.findtext("Message", "")


def _page(body: bytes, doing: str, where: str, dated: bool = False) -> ListedPage:
    """Columns from a ListObjectsV2 answer. RemoteFailure for anything else: a listing that broke off proves nothing."""
    plain = _plain_page(body, dated)
    return _parsed_page(body, doing, where, dated) if plain is None else plain


_QUOTE = '(?:&#34;|&quot;|")?'
_CHECKSUMS = "(?:<ChecksumAlgorithm>[^<]*</ChecksumAlgorithm>)*(?:<ChecksumType>[^<]*</ChecksumType>)?"
_OWNER = "(?:<Owner>(?:<ID>[^<]*</ID>|<DisplayName>[^<]*</DisplayName>|<ID/>|<DisplayName/>)*</Owner>)?"
_OBJECT = re.compile(
    "<Contents><Key>([^<&]*)</Key><LastModified>([^<&]*)</LastModified>"
    f'<ETag>{_QUOTE}([^<&"]*){_QUOTE}</ETag>{_CHECKSUMS}<Size>([0-9]+)</Size>{_OWNER}'
    "<StorageClass>([^<&]*)</StorageClass>"
)
_END = "</ListBucketResult>"
_MORE = re.compile("<IsTruncated>(true|false)</IsTruncated>")


def _plain_page(body: bytes, dated: bool) -> ListedPage | None:
    """The same of an answer as AWS, MinIO and Ceph write it: whole, and with no text that has to be unescaped. Found by
    a pattern, in a fraction of a parser's time; None for any other."""
    try:
        text = body.decode()
    except UnicodeError:
        return None
    found, more = _OBJECT.findall(text), _MORE.findall(text)
    whole = len(more) == 1 and "<!" not in text and text.rstrip().endswith(_END)
    if not whole or len(found) != text.count("<Contents") or "<CommonPrefixes" in text:
        return None
    keys, modified, etags, sizes, classes = map(list, zip(*found, strict=True)) if found else ([], [], [], [], [])
    return ListedPage(
        list(map(_unquoted, keys)) if "<EncodingType>url</EncodingType>" in text else keys,
        list(map(int, sizes)),
        etags,
        ["" if storage_class == "STANDARD" else storage_class for storage_class in classes],
        more[0] == "true",
        modified if dated else [],
    )


def _parsed_page(body: bytes, doing: str, where: str, dated: bool) -> ListedPage:
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise RemoteFailure(f"{where} gave a response that is not S3 to {doing}") from error
    name = _XMLNS if root.tag.startswith("{") else ""
    if root.tag != f"{name}ListBucketResult" or (more := root.findtext(f"{name}IsTruncated")) is None:
        raise RemoteFailure(f"{where} gave a response that is not a listing to {doing}")
    items = root.findall(f"{name}Contents")
    keys, sizes, etags, classes = (
        [item.findtext(f"{name}{what}", default) for item in items]
        for what, default in (("Key", ""), ("Size", "0"), ("ETag", ""), ("StorageClass", ""))
    )
    return ListedPage(
        list(map(_unquoted, keys)) if root.findtext(f"{name}EncodingType") == "url" else keys,
        list(map(int, sizes)),
        [etag.strip('"') for etag in etags],
        ["" if storage_class == "STANDARD" else storage_class for storage_class in classes],
        more == "true",
        [item.findtext(f"{name}LastModified", "") for item in items] if dated else [],
    )


def _unquoted(key: str) -> str:
    return unquote_plus(key) if "%" in key or "+" in key else key
