"""Writes of an export, one request each: put, copy, delete. Tried again while a deadline allows it.

A write that anybody could see begins only after the deadline was asked. S3 may answer 200 and tell of an error in the
body: that is raised like any other. A write that got no answer may still be carried out, also after it was repeated:
`Writer.unanswered` says that there was one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from hashlib import md5
from typing import TypeVar
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import urllib3

from adapters.s3.fast_store import FastObjectStore, pause_before
from adapters.s3.refusals import answer_error
from adapters.s3.store import NO_HEADERS, split_uri
from adapters.s3.unsigned import Compared, md5_header
from core.errors import Full, Invalid, LakeMirrorError, NotFound, NotSent, RemoteFailure, Unreachable
from core.exporting.deadline import Deadline

R = TypeVar("R")

TRIES = 8
MOST_DELETED = 1000
COPY_SECONDS = 60.0
"""How long the longest write that anybody could see may take to be answered: who takes over waits longer than that."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_AS_NUMBERS = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}


class Writer:
    """Writes to one store before one deadline. Errors are those of `core.errors`, or Late.

    `unanswered`: a write that anybody could see got no answer at some time, so the store may yet carry it out.
    """

    def __init__(self, store: FastObjectStore, deadline: Deadline, tries: int = TRIES) -> None:
        self.store, self.deadline, self.tries = store, deadline, tries
        self.unanswered = False
        self._batches = True

    def write(
        self,
        method: str,
        uri: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        query: Mapping[str, str] = NO_HEADERS,
        read_seconds: float = 0.0,
    ) -> urllib3.BaseHTTPResponse:
        """One request, repeated after whatever may pass by itself."""
        return self._persist(lambda: self._once(method, uri, headers, body, query, read_seconds))

    def write_compared(
        self,
        uri: str,
        digest: str,
        body: bytes,
        headers: Mapping[str, str] = NO_HEADERS,
        query: Mapping[str, str] = NO_HEADERS,
    ) -> urllib3.BaseHTTPResponse:
        """A PUT whose body the store compares with this MD5, in hexadecimal digits: it is hashed for the signature only
        where the bucket does not take it without."""
        told = {**headers, "content-md5": md5_header(digest)}

        def send(unsigned: bool) -> urllib3.BaseHTTPResponse:
            return self._once("PUT", uri, told, body, query, unsigned=unsigned)

        bodies, bucket = self.store.unsigned, split_uri(uri)[0]
        with closing(Compared(send, digest, bodies, bucket, self.deadline)) as tried:
            return self._persist(tried)

    def _once(
        self,
        method: str,
        uri: str,
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
        read_seconds: float = 0.0,
        unsigned: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        url, doing = self.store.url(*split_uri(uri), query), f"{method.lower()} {uri}"
        try:
            answer = self.store.send(method, url, doing, headers, body, read_seconds, unsigned=unsigned)
        except LakeMirrorError as error:
            self.unanswered |= _is_seen(method, query) and may_be_done(error)
            raise
        self._expect_no_error(answer, doing)
        return answer

    def _persist(self, call: Callable[[], R]) -> R:
        for attempt in range(self.tries - 1):
            self.deadline.check()
            try:
                return call()
            except LakeMirrorError as error:
                if not error.retryable:
                    raise
                self.deadline.pause(pause_before(attempt, error))
        self.deadline.check()
        return call()

    def _expect_no_error(self, answer: urllib3.BaseHTTPResponse, doing: str) -> None:
        body = answer.data.lstrip()[:200]
        if b"<Error" in body and (root := parsed(answer.data)) is not None and plain_tag(root) == "Error":
            code, message = text_of(root, "Code"), text_of(root, "Message")
            raise answer_error(500, code, message, doing, self.store.where)

    def put(self, uri: str, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> str:
        """Writes an object; gives its ETag."""
        return _etag(self.write("PUT", uri, headers, body).headers.get("etag", ""))

    def copy(self, source: str, etag: str, uri: str, headers: Mapping[str, str]) -> str:
        """Copies within the store; gives the new object's ETag. Conflict: the source has another one than `etag` (some
        stores don't look)."""
        copy_headers = {**headers, **copy_source(source, etag), "x-amz-metadata-directive": "REPLACE"}
        answer = self.write("PUT", uri, copy_headers, read_seconds=COPY_SECONDS)
        root = parsed(answer.data)
        if root is None or not (new_etag := text_of(root, "ETag")):
            raise RemoteFailure(f"{self.store.where} gave a response that is not S3 to copy to {uri}")
        return _etag(new_etag)

    def delete(self, uris: Sequence[str]) -> dict[str, LakeMirrorError]:
        """Deletes objects of one bucket; what is not there is deleted. Gives what could not be."""
        alone = [uri for uri in uris if not self._batches or _NOT_IN_XML.search(uri)]
        together = [uri for uri in uris if uri not in set(alone)] if alone else list(uris)
        failed: dict[str, LakeMirrorError] = {}
        for at in range(0, len(together), MOST_DELETED):
            alone += self._delete_batch(together[at : at + MOST_DELETED], failed)
        for uri in alone:
            self._delete_one(uri, failed)
        return failed

    def _delete_one(self, uri: str, failed: dict[str, LakeMirrorError]) -> None:
        try:
            self.write("DELETE", uri)
        except NotFound:
            return
        except LakeMirrorError as error:
            failed[uri] = error

    def _delete_batch(self, uris: Sequence[str], failed: dict[str, LakeMirrorError]) -> Sequence[str]:
        """Deletes them in one request; gives those to be tried one by one."""
        bucket, _ = split_uri(uris[0])
        keys = {split_uri(uri)[1]: uri for uri in uris}
        body = _delete_body(keys)
        headers = {"Content-MD5": md5_header(md5(body, usedforsecurity=False).hexdigest())}
        try:
            answer = self.write("POST", f"s3://{bucket}", headers, body, {"delete": ""})
        except Invalid:
            # A store without batches, or one to which ours mean nothing.
            self._batches = False
            return uris
        except LakeMirrorError as error:
            failed |= dict.fromkeys(uris, error)
            return []
        return self._refused(answer.data, keys)

    def _refused(self, body: bytes, keys: Mapping[str, str]) -> list[str]:
        """Those that the answer has an error for: asked one by one, they say why. All, if it names an unknown one."""
        root = parsed(body)
        if root is None or plain_tag(root) != "DeleteResult":
            return list(keys.values())
        refused = [text_of(child, "Key") for child in root if plain_tag(child) == "Error"]
        if any(key not in keys for key in refused):
            return list(keys.values())
        return [keys[key] for key in refused]


def _is_seen(method: str, query: Mapping[str, str]) -> bool:
    """Does it change what others see? Uploads begun or given up do not, nor their parts; an upload's end does."""
    if method not in ("PUT", "POST", "DELETE") or "uploads" in query or "partNumber" in query:
        return False
    return not (method == "DELETE" and "uploadId" in query)


def may_be_done(error: LakeMirrorError) -> bool:
    """Nobody answered, or something on the way did: not the store, which may go on with it."""
    return isinstance(error, (Unreachable, RemoteFailure)) and not isinstance(error, (NotSent, Full))


def copy_source(uri: str, etag: str) -> dict[str, str]:
    """The headers that name what is to be copied, and the ETag that it must have."""
    bucket, key = split_uri(uri)
    quoted = f'"{etag}"'
    # Ceph's gateway has a name of its own for the condition; whoever sees the other one too does not mind.
    conditions = {"x-amz-copy-source-if-match": quoted, "x-amz-copy-if-match": quoted}
    return {"x-amz-copy-source": quote(f"/{bucket}/{key}", safe="/~"), **conditions}


def parsed(body: bytes) -> ElementTree.Element | None:
    """An answer's XML; some stores send blanks ahead, to keep the line open."""
    try:
        return ElementTree.fromstring(body.strip())
    except ElementTree.ParseError:
        return None


def text_of(element: ElementTree.Element, tag: str) -> str:
    """The text of a child, with or without S3's namespace."""
    return next((child.text or "" for child in element if plain_tag(child) == tag), "")


def all_of(element: ElementTree.Element, tag: str) -> list[ElementTree.Element]:
    """The children of this name."""
    return [child for child in element if plain_tag(child) == tag]


def plain_tag(element: ElementTree.Element) -> str:
    """An element's name without a namespace."""
    return element.tag.rpartition("}")[2]


def _etag(quoted: str) -> str:
    return quoted.strip().strip('"')


def _delete_body(keys: Iterable[str]) -> bytes:
    items = "".join(f"<Object><Key>{escape(key, _AS_NUMBERS)}</Key></Object>" for key in keys)
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>{items}</Delete>'.encode()
