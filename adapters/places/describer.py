"""What a place's store keeps beside an object's bytes: asked and written by calls of their own.

`version`: the version of an object that is meant; "": the current one. Errors are those of `core.errors`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import md5
from xml.sax.saxutils import escape

from adapters.places.reader import PlaceReader
from adapters.s3.multipart import Layout, Uploads
from adapters.s3.originals import EMPTY_MD5
from adapters.s3.store import split_uri
from adapters.s3.unsigned import md5_header
from adapters.s3.writes import Writer, all_of, parsed, plain_tag, text_of
from core.bringing import LARGEST_PART, parts_of
from core.errors import Invalid, NotFound, RemoteFailure
from core.exporting.deadline import Deadline
from core.mirroring.content_proof import UPLOAD_MARKS
from core.travelling.describing import LOCK_HOLD, LOCK_MODE, TAGGING, Lock, Tags, tagging, timestamp
from core.types import ObjectInfo

COPY_AT_ONCE = 5 << 30
"""What a store copies in one request has no more bytes."""
LOCKS = frozenset({LOCK_MODE, LOCK_HOLD})
"""Headers that S3 takes with an MD5 of the body alone, be it an empty one."""
_XMLNS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
_BYPASS = {"x-amz-bypass-governance-retention": "true"}


class Describer:
    """Tags, locks and headers of a place's objects. Safe to use from several threads."""

    def __init__(self, place: PlaceReader, tries: int = 2) -> None:
        self._place, self._store = place, place.store
        self._writer = Writer(place.store, Deadline(math.inf), tries)
        self._locks: bool | None = None

    # --- asking -------------------------------------------------------------------------------------------------------

    def tags(self, key: str, version: str = "") -> dict[str, str]:
        """The tags of an object. Raises NotFound where there is no such object."""
        uri = self._place.uri(key)
        query = _of(version, "tagging")
        root = parsed(self._store.asked("GET", self._store.url(*split_uri(uri), query), f"get tags of {uri}").data)
        if root is None or plain_tag(root) != "Tagging":
            raise RemoteFailure(f"{self._store.where} gave a response that is not S3 to get tags of {uri}")
        return {text_of(tag, "Key"): text_of(tag, "Value") for group in all_of(root, "TagSet") for tag in group}

    def has_locks(self) -> bool:
        """Whether objects of the bucket can be locked: kept once it is so, for that never ends."""
        if not self._locks:
            self._locks = self._asked_for_locks()
        return self._locks

    def _asked_for_locks(self) -> bool:
        bucket = self._place.bucket
        url = self._store.url(bucket, "", {"object-lock": ""})
        try:
            root = parsed(self._store.asked("GET", url, f"get the lock configuration of s3://{bucket}").data)
        except NotFound as error:
            if error.store_code == "NoSuchBucket":
                raise
            return False
        return root is not None and text_of(root, "ObjectLockEnabled") == "Enabled"

    # --- writing ------------------------------------------------------------------------------------------------------

    def set_tags(self, key: str, tags: Tags, version: str = "") -> None:
        """Gives an object these tags and no others."""
        if not tags:
            self._writer.write("DELETE", self._place.uri(key), query=_of(version, "tagging"))
            return
        items = "".join(
            f"<Tag><Key>{escape(name)}</Key><Value>{escape(value)}</Value></Tag>"
            for name, value in sorted(tags.items())
        )
        self._put(key, "tagging", f"<Tagging {_XMLNS}><TagSet>{items}</TagSet></Tagging>", version)

    def set_retention(self, key: str, lock: Lock, version: str = "", *, shorten: bool = False) -> None:
        """Protects an object until a time; `shorten`: although it is protected for longer."""
        assert lock.until is not None
        items = f"<Mode>{escape(lock.mode)}</Mode><RetainUntilDate>{timestamp(lock.until)}</RetainUntilDate>"
        more = _BYPASS if shorten else {}
        self._put(key, "retention", f"<Retention {_XMLNS}>{items}</Retention>", version, more)

    def set_hold(self, key: str, hold: bool, version: str = "") -> None:
        """Holds an object, or lets it go."""
        status = "ON" if hold else "OFF"
        self._put(key, "legal-hold", f"<LegalHold {_XMLNS}><Status>{status}</Status></LegalHold>", version)

    def _put(self, key: str, what: str, text: str, version: str, more: Mapping[str, str] | None = None) -> None:
        body = text.encode()
        digest = md5_header(md5(body, usedforsecurity=False).hexdigest())
        headers = {"content-md5": digest, "content-type": "application/xml", **(more or {})}
        self._writer.write("PUT", self._place.uri(key), headers, body, _of(version, what))

    def describe(self, key: str, there: ObjectInfo, headers: Mapping[str, str], tags: Tags) -> bool:
        """Gives an object other headers and these tags, without its bytes passing here: the store copies it onto
        itself, while it is the one that was seen. False: not in a way that surely leaves it in its parts, or the store
        can't copy it at all; then its bytes have to be written anew."""
        uri = self._place.uri(key)
        told = {**headers, TAGGING: tagging(tags)} if tags else dict(headers)
        if parts_of(there.etag):
            part = self._first_part(uri)
            if not part or part > LARGEST_PART or -(-there.size // part) != parts_of(there.etag):
                return False
            uploads = Uploads(self._writer, self._place.uri(UPLOAD_MARKS))
            uploads.describe(uri, told, Layout(there.size, part), there.etag)
            return True
        if there.size > COPY_AT_ONCE:
            return False
        told |= {"x-amz-tagging-directive": "REPLACE"} | ({"content-md5": EMPTY_MD5} if LOCKS & told.keys() else {})
        self._writer.copy(uri, there.etag, uri, told)
        return True

    def _first_part(self, uri: str) -> int:
        """The size of its first part, where the store tells; 0 where it does not."""
        url = self._store.url(*split_uri(uri), {"partNumber": "1"})
        try:
            answer = self._store.asked("HEAD", url, f"head {uri}, part 1")
        except (Invalid, NotFound):
            return 0
        return int(answer.headers.get("content-length", 0)) if answer.status == 206 else 0


def _of(version: str, what: str) -> dict[str, str]:
    return {what: "", **({"versionId": version} if version else {})}
