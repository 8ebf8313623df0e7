"""Object stores that speak S3, by boto3. Implements `core.ports.ObjectStore`; errors are those of `core.errors`.

Reads and writes of whole objects are repeated after connection errors, throttling and 5xx; what is raised in the end
says whether a later try may help. `fast_store` adds what looking at many objects needs.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import boto3
import botocore.session
from botocore import exceptions as boto_errors
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.httpsession import get_cert_path
from botocore.parsers import ResponseParserError
from botocore.utils import get_environ_proxies

from adapters.rights_of_calls import right_for_request
from adapters.s3.bucket_rules import NOT_CONFIGURED, lifecycle_of, replication_of
from adapters.s3.presigning import presigned_get
from adapters.s3.refusals import answer_error
from adapters.s3.signing import Signer
from adapters.s3.store_keys import StoreKeys
from core.clocks import seconds_ahead
from core.errors import Invalid, LakeMirrorError, NotFound, RemoteFailure, Unauthenticated, Unreachable
from core.proof_of_parts import PROOF_HEADER
from core.store_access import DIRECT, StoreAccess
from core.types import LifecycleRule, ObjectInfo, ObjectVersion, PresignedUrl, ReplicationRule

R = TypeVar("R")

CONNECT_SECONDS = 3.0
READ_SECONDS = 20.0
READ_TRIES = 3
"""boto3 repeats a request, but not a body that broke off halfway: that is done here."""

PIECE_BYTES = 1 << 20
_making = threading.Lock()
"""A session makes one client at a time."""

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
OWN_ONLY: Mapping[str, str] = MappingProxyType({"X-Minio-Source-Proxy-Request": "false"})
"""Of every GET and HEAD: tell of what is here. Where rules lead both ways, MinIO else answers for what has not arrived
with what the other site has: what is lost with the other site would count as there. Other stores ignore it."""

_NO_ANSWER = (boto_errors.HTTPClientError, boto_errors.ConnectionError, boto_errors.IncompleteReadError)
_FROM_BOTO = (boto_errors.ClientError, boto_errors.BotoCoreError, ResponseParserError)


def split_uri(uri: str) -> tuple[str, str]:
    """(bucket, key) of `s3://bucket/key`; the key may be "". Raises Invalid for anything else."""
    scheme, separator, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in ("s3", "s3a") or not separator or not bucket:
        raise Invalid(f"'{uri}' is not an s3:// address")
    return bucket, key


def _with_file(credentials_file: str) -> Any:
    """A session of botocore's that looks for credentials in this file, "": in the usual one."""
    session = botocore.session.get_session()
    if credentials_file:
        if not Path(credentials_file).is_file():
            hint = "Create it on every machine that uses the store"
            raise Invalid(f"there is no file {credentials_file} on this machine", field="credentials_file", hint=hint)
        session.set_config_variable("credentials_file", credentials_file)
    return session


class S3ObjectStore:
    """One S3-compatible store; an empty endpoint is AWS's own. Safe to use from several threads."""

    def __init__(
        self,
        *,
        endpoint: str = "",
        region: str = "",
        force_path_style: bool = False,
        access_key_id: str = "",
        secret_access_key: str = "",
        session_token: str = "",
        access: StoreAccess = DIRECT,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
        tries: int = 4,
        pool: int = 32,
    ) -> None:
        self.endpoint, self.region, self.path_style = endpoint, region or "us-east-1", force_path_style
        self.connect_seconds, self.read_seconds, self.tries, self.pool = connect_seconds, read_seconds, tries, pool
        self.access = access
        self._session = self._session_of(StoreKeys(access_key_id, secret_access_key, session_token))
        self._signer = Signer(self.region)
        self._client = self._new_client()
        self._client.meta.events.register("before-call.s3", _ask_for_own)

    def _new_client(self) -> Any:
        return self._session.client(
            "s3", endpoint_url=self.endpoint or None, config=self._config(), verify=self.access.ca_bundle or None
        )

    def _session_of(self, keys: StoreKeys) -> Any:
        """With the keys, the profile or the usual chain, and by these with the role. Raises Invalid."""
        require_file(self.access.ca_bundle)
        try:
            session = boto3.session.Session(
                aws_access_key_id=keys.access_key_id or None,
                aws_secret_access_key=keys.secret_access_key or None,
                aws_session_token=keys.session_token or None,
                region_name=self.region,
                profile_name=self.access.profile or None,
                botocore_session=_with_file(self.access.credentials_file),
            )
        except boto_errors.ProfileNotFound as error:
            hint = "Add it to ~/.aws/config on every machine that uses the store"
            raise Invalid(f"there is no AWS profile '{self.access.profile}' on this machine", hint=hint) from error
        return self._in_role(session) if self.access.role_arn else session

    def _in_role(self, session: Any) -> Any:
        """A session that assumes the role when it first asks, and again before that ends."""
        external = {"ExternalId": self.access.role_external_id} if self.access.role_external_id else {}

        def fetch() -> Any:
            own = session.get_credentials()
            if own is None:
                raise boto_errors.NoCredentialsError
            sts = partial(session.client, endpoint_url=self.access.sts_endpoint or None, config=self._config())
            extra = {"RoleSessionName": "lakemirror", **external}
            fetcher = AssumeRoleCredentialFetcher(sts, own, self.access.role_arn, extra_args=extra)
            return fetcher.fetch_credentials()

        assumed = botocore.session.get_session()
        assumed._credentials = DeferredRefreshableCredentials(method="assume-role", refresh_using=fetch)
        return boto3.session.Session(botocore_session=assumed, region_name=self.region)

    def _config(self) -> Config:
        return Config(
            connect_timeout=self.connect_seconds,
            read_timeout=self.read_seconds,
            retries={"mode": "standard", "total_max_attempts": self.tries},
            max_pool_connections=self.pool,
            tcp_keepalive=True,
            proxies={"http": self.access.proxy, "https": self.access.proxy} if self.access.proxy else None,
            signature_version="s3v4",
            # Other stores than AWS's refuse or drop the newer checksum headers.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={"addressing_style": "path" if self.path_style else "auto"},
        )

    def get(self, uri: str) -> bytes:
        """The whole object. NotFound when it is definitely not there."""
        return self._reading(uri, lambda body: bytes(body.read()))

    def md5(self, uri: str) -> str:
        """The MD5 of an object's content in hexadecimal digits, however large it is. NotFound as for `get`."""
        return self._reading(uri, _md5)

    def _count(self) -> None:
        """A request is made; `FastObjectStore` counts them."""

    def _reading(self, uri: str, read: Callable[[Any], R]) -> R:
        self._count()
        bucket, key = split_uri(uri)
        with self._telling(f"get {uri}"):
            for _ in range(READ_TRIES - 1):
                try:
                    return read(self._client.get_object(Bucket=bucket, Key=key)["Body"])
                except (boto_errors.ResponseStreamingError, boto_errors.IncompleteReadError):
                    continue
            return read(self._client.get_object(Bucket=bucket, Key=key)["Body"])

    def head(self, uri: str) -> ObjectInfo | None:
        """What the store says of an object; None when it is definitely not there."""
        bucket, key = split_uri(uri)
        try:
            with self._telling(f"head {uri}"):
                answer = self._client.head_object(Bucket=bucket, Key=key)
                return stored(key, answer["ResponseMetadata"]["HTTPHeaders"])
        except NotFound:
            return None

    def proxies(self, uri: str) -> bool | None:
        """Would the store answer whoever doesn't forbid it with another site's object? None: it has this one itself."""
        if self.head(uri) is not None:
            return None
        shown = self._shows(uri)
        return None if shown and self.head(uri) is not None else shown  # it may have arrived meanwhile

    def _shows(self, uri: str) -> bool:
        """Is it there for somebody who asks as others do?"""
        bucket, key = split_uri(uri)
        try:
            with _making:
                plain = self._new_client()
            with self._telling(f"head {uri}"):
                plain.head_object(Bucket=bucket, Key=key)
        except NotFound:
            return False
        return True

    def presigned(self, uri: str, seconds: int) -> PresignedUrl:
        """An address by which anybody may read the object for so long, or as long as our own credentials last."""
        bucket, key = split_uri(uri)
        with self._telling("sign an address"):
            held = self._session.get_credentials()
            return presigned_get(self._client, held, bucket=bucket, key=key, seconds=seconds, where=self.where)

    def list(self, prefix_uri: str) -> Iterator[ObjectInfo]:
        """Objects below a prefix, keys ascending. A listing does not tell of restores: `head` does."""
        bucket, prefix = split_uri(prefix_uri)
        with self._telling(f"list {prefix_uri}"):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                yield from map(_listed, page.get("Contents", ()))

    def list_versions(self, prefix_uri: str) -> Iterator[ObjectVersion]:
        """The current versions of the objects below a prefix, keys ascending. Needs s3:ListBucketVersions."""
        bucket, prefix = split_uri(prefix_uri)
        with self._telling(f"list the versions of {prefix_uri}"):
            for page in self._client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
                for item in page.get("Versions", ()):
                    if item["IsLatest"]:
                        yield ObjectVersion(item["Key"], item["Size"], item["VersionId"])

    def put(self, uri: str, data: bytes) -> None:
        """Write an object, in place of an older one."""
        bucket, key = split_uri(uri)
        with self._telling(f"put {uri}"):
            self._client.put_object(Bucket=bucket, Key=key, Body=data)

    def versioning(self, bucket_uri: str) -> str:
        """ "Enabled", "Suspended", or "" for a bucket that never had versions."""
        bucket, _ = split_uri(bucket_uri)
        with self._telling(f"read the versioning of {bucket}"):
            return str(self._client.get_bucket_versioning(Bucket=bucket).get("Status", ""))

    def replication_rules(self, bucket_uri: str) -> Sequence[ReplicationRule]:
        """What the store copies out of a bucket by itself; none where it has no configuration for that."""
        return replication_of(self._configured(bucket_uri, "replication", self._client.get_bucket_replication))

    def lifecycle_rules(self, bucket_uri: str) -> Sequence[LifecycleRule]:
        """What the store deletes or moves in a bucket by itself; none where it has no configuration for that."""
        return lifecycle_of(self._configured(bucket_uri, "lifecycle", self._client.get_bucket_lifecycle_configuration))

    def _configured(self, bucket_uri: str, what: str, ask: Callable[..., Any]) -> Mapping[str, Any]:
        bucket, _ = split_uri(bucket_uri)
        with self._telling(f"read the {what} of {bucket}"):
            try:
                answer: Mapping[str, Any] = ask(Bucket=bucket)
            except boto_errors.ClientError as error:
                if error.response.get("Error", {}).get("Code") in NOT_CONFIGURED:
                    return {}
                raise
        return answer

    def clock_ahead(self, bucket_uri: str) -> float:
        """By how many seconds the store's clock is ahead of this machine's; a refusal tells it as well."""
        bucket, _ = split_uri(bucket_uri)
        asked_at = time.time()
        with self._telling(f"ask {bucket} for the time"):
            try:
                answer = self._client.head_bucket(Bucket=bucket)
            except boto_errors.ClientError as error:
                answer = error.response
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", "")
        ahead = seconds_ahead(date, asked_at, time.time())
        if ahead is None:
            raise RemoteFailure(f"{self.where} does not report the time")
        return ahead

    @contextmanager
    def _telling(self, doing: str) -> Iterator[None]:
        try:
            yield
        except _FROM_BOTO as error:
            raise core_error(error, doing, self.where) from error

    @property
    def where(self) -> str:
        """The store as messages name it."""
        return self.endpoint or f"S3 in {self.region}"

    @property
    def base_url(self) -> str:
        """The address that requests go to."""
        return str(self._client.meta.endpoint_url)

    @property
    def ca_bundle(self) -> str:
        """The file of certificates that boto3 trusts."""
        return str(self.access.ca_bundle or os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True))

    @property
    def proxy(self) -> str:
        """The proxy that we were told of, else the one that the environment asks for; "" for none."""
        return self.access.proxy or str(get_environ_proxies(self.base_url).get(self.base_url.partition(":")[0], ""))

    def signed_headers(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        *,
        unsigned: bool = False,
    ) -> dict[str, str]:
        """These headers and what signs them and the body, if there are credentials. `unsigned`: as `Signer` says."""
        credentials = self._session.get_credentials()
        if credentials is None:
            return dict(headers)
        with self._telling("get credentials"):
            keys = credentials.get_frozen_credentials()
        held = keys.access_key, keys.secret_key, keys.token or ""
        return self._signer.signed(*held, method, url, headers, body, unsigned)


def own_only(method: str) -> Mapping[str, str]:
    """The headers with which a request of this method asks for the store's own objects."""
    return OWN_ONLY if method in ("GET", "HEAD") else NO_HEADERS


def _ask_for_own(params: Any, **_: Any) -> None:
    """boto3 is about to make a request of these: what is added here is signed."""
    params["headers"].update(own_only(params["method"]))


def require_file(ca_bundle: str) -> None:
    """Raises Invalid when a file of certificates isn't on this machine: what the SDKs say then helps nobody."""
    if ca_bundle and not Path(ca_bundle).is_file():
        hint = "Put the certificate file there on every machine that works for this installation"
        raise Invalid(f"there is no file {ca_bundle} on this machine", field="ca_bundle", hint=hint)


def _md5(body: Any) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    for piece in body.iter_chunks(PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest()


def _plain_class(storage_class: str | None) -> str:
    return "" if storage_class in (None, "STANDARD") else str(storage_class)


def _listed(item: Mapping[str, Any]) -> ObjectInfo:
    return ObjectInfo(item["Key"], item["Size"], item["ETag"].strip('"'), _plain_class(item.get("StorageClass")))


def stored(key: str, headers: Mapping[str, str]) -> ObjectInfo:
    """What the headers of an answer to HEAD say of an object, by their names in small letters."""
    customer = "customer" if "x-amz-server-side-encryption-customer-algorithm" in headers else ""
    return ObjectInfo(
        key,
        int(headers.get("content-length", 0)),
        headers.get("etag", "").strip('"'),
        _plain_class(headers.get("x-amz-archive-status") or headers.get("x-amz-storage-class")),
        'ongoing-request="false"' in headers.get("x-amz-restore", ""),  # there is a copy that can be read now
        headers.get("x-amz-server-side-encryption", customer),
        headers.get(PROOF_HEADER, ""),
    )


def core_error(error: Exception, doing: str, where: str) -> LakeMirrorError:
    """What an exception of boto3 means for the caller."""
    if isinstance(error, boto_errors.ClientError):
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        details = error.response.get("Error", {})
        said = (str(details.get(name, "")) for name in ("Code", "Message"))
        return answer_error(status, *said, doing, where, right=right_for_request(error.operation_name))
    if isinstance(error, _NO_ANSWER):
        return Unreachable(f"{where} does not answer ({doing})", hint=type(error).__name__)
    if isinstance(error, (boto_errors.NoCredentialsError, boto_errors.PartialCredentialsError)):
        return Unauthenticated(f"no credentials for {where} ({doing})")
    if isinstance(error, ResponseParserError):
        return RemoteFailure(f"{where} gave a response that is not S3 to {doing}")
    return Invalid(f"{doing}: {error}")
