"""Bodies that are not hashed for the signature, where a bucket takes that: a signed Content-MD5 stands for them.

The hash costs us and the store as much as anything else that happens to a large body. Some buckets' policies refuse a
body without it, and some stores don't know of that: it is tried, and what it came to is remembered.

It is tried only where nothing on the way can alter a body: of a store that ignores Content-MD5, an altered write whose
answer got lost may be carried out after the right one, and nobody would look at that object again.
"""

from __future__ import annotations

import ipaddress
import threading
from base64 import b64encode
from collections.abc import Callable
from urllib.parse import SplitResult

import urllib3

from core.errors import Conflict, Full, LakeMirrorError, NotFound, NotSent, Throttled
from core.exporting.deadline import Deadline

_WHATEVER_IS_SIGNED = (NotFound, Conflict, NotSent, Throttled, Full)
"""What a store may answer that has nothing to do with how the body is signed."""


def md5_header(digest: str) -> str:
    """What Content-MD5 says."""
    return b64encode(bytes.fromhex(digest)).decode()


def is_protected(address: SplitResult, proxy: str | None) -> bool:
    """Whether nobody on the way to a store can alter a body: it is reached by https, or it is on this machine."""
    if address.scheme == "https":
        return True
    host = address.hostname or ""
    return not proxy and (host == "localhost" or _is_loopback(host))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class UnsignedBodies:
    """Which buckets of a store take them, as writes found out: known as long as the process lives.

    Where nothing is known one write tries it; others that go on beside it are hashed, so that a refusal costs one body.
    None does unless the way to the store is `protected`.
    """

    def __init__(self, *, protected: bool = True) -> None:
        self._protected = protected
        self._lock = threading.Lock()
        self._taken: dict[str, bool] = {}
        self._tried = set[str]()

    def takes(self, bucket: str) -> bool | None:
        """Whether a bucket does; None: not known."""
        return self._taken.get(bucket)

    def may(self, bucket: str) -> bool:
        """Is this write to go without a hash? Who is told yes calls `done` once it has ended."""
        if not self._protected:
            return False
        with self._lock:
            if bucket in self._taken:
                return self._taken[bucket]
            first = bucket not in self._tried
            self._tried.add(bucket)
            return first

    def done(self, bucket: str) -> None:
        """The write has ended: if it taught nothing, the next one tries."""
        with self._lock:
            self._tried.discard(bucket)

    def learn(self, bucket: str, takes: bool) -> None:
        """From now on it is known."""
        with self._lock:
            self._taken[bucket] = takes


class Compared:
    """One write whose body the store compares with an MD5; each call is a try, of which the first goes without a hash.

    It counts if the store gives that very MD5 as the ETag of what it has: so a body that was altered on the way never
    does, even if the store ignores Content-MD5. Else the same goes once more with a hash, at once if the store refused
    it. If that passes, the bucket is known to want one; if not, its answer is what is told, and nothing is known.
    """

    def __init__(
        self,
        send: Callable[[bool], urllib3.BaseHTTPResponse],
        digest: str,
        bodies: UnsignedBodies,
        bucket: str,
        deadline: Deadline,
    ) -> None:
        self._send, self._digest, self._bodies, self._bucket = send, digest, bodies, bucket
        self._deadline, self._asked, self._has_turn, self._in_doubt = deadline, False, False, False

    def close(self) -> None:
        """There will be no other try."""
        if self._has_turn:
            self._bodies.done(self._bucket)

    def __call__(self) -> urllib3.BaseHTTPResponse:
        if not self._asked:
            self._asked, self._has_turn = True, self._bodies.may(self._bucket)
            if self._has_turn:
                if (answer := self._without_hash()) is not None:
                    return answer
                self._deadline.check()
        answer = self._send(False)
        if self._in_doubt:
            self._bodies.learn(self._bucket, False)
        return answer

    def _without_hash(self) -> urllib3.BaseHTTPResponse | None:
        """The answer; None: it is no proof, or a refusal. Raises what has other reasons or may pass by itself."""
        try:
            answer = self._send(True)
        except _WHATEVER_IS_SIGNED:
            raise
        except LakeMirrorError as error:
            # Who refuses before it has read the body may close the connection, so that its answer is lost.
            self._in_doubt = not (error.retryable and self._bodies.takes(self._bucket))
            if error.retryable:
                raise
            return None
        if answer.headers.get("etag", "").strip().strip('"') != self._digest:
            self._in_doubt = True
            return None
        self._bodies.learn(self._bucket, True)
        return answer
