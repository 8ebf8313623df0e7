"""The command that copies one object from a region's store to another's, quoted for a shell. Pure.

Of the AWS CLI: https://docs.aws.amazon.com/cli/latest/reference/s3api/copy-object.html, which takes up to 5 GB.
"""

from __future__ import annotations

from dataclasses import dataclass
from shlex import join
from urllib.parse import quote

LARGEST = 5 * 1000**3
"""Bytes that CopyObject takes."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where the AWS CLI finds a store; an empty `endpoint` is AWS's own."""

    endpoint: str
    region: str


@dataclass(frozen=True, slots=True)
class CopyCommand:
    """A command for a shell, and what to mind about it, or ""."""

    command: str
    hint: str


def copy_command(
    source_uri: str, uri: str, *, source: Store, destination: Store, size: int | None, etag: str = ""
) -> CopyCommand:
    """Copy the object at `source_uri` to `uri`, both `s3://bucket/key`. `etag` as the source's commit names it."""
    if source.endpoint.rstrip("/") != destination.endpoint.rstrip("/"):
        reads = ["aws", "s3", "cp", source_uri, "-", *_at(source)]
        expected = ["--expected-size", str(size)] if size is not None and size > LARGEST else []
        writes = ["aws", "s3", "cp", "-", uri, *expected, *_at(destination)]
        return CopyCommand(f"{join(reads)} | {join(writes)}", _parts_hint(etag))
    if "-" in etag or (size is not None and size > LARGEST):
        words = ["aws", "s3", "cp", source_uri, uri, "--source-region", source.region, *_at(destination)]
        over = "It is larger than 5 GB, which one copy-object can't copy. " if size and size > LARGEST else ""
        return CopyCommand(join(words), over + _parts_hint(etag))
    bucket, key = _split(uri)
    copied = quote("/".join(_split(source_uri)), safe="/")
    places = ["--copy-source", copied, "--bucket", bucket, "--key", key]
    return CopyCommand(join(["aws", "s3api", "copy-object", *places, *_at(destination)]), "")


def _at(store: Store) -> list[str]:
    endpoint = ["--endpoint-url", store.endpoint] if store.endpoint else []
    return ["--region", store.region, *endpoint] if store.region else endpoint


def _split(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.partition("://")[2].partition("/")
    return bucket, key


def _parts_hint(etag: str) -> str:
    """A store's ETag of an upload in parts depends on their size."""
    if "-" not in etag:
        return ""
    return (
        f"It was written in {etag.rpartition('-')[2]} parts. Its ETag matches only if it is copied in parts of "
        "the same size: aws configure set s3.multipart_chunksize SIZE"
    )
