"""Two regions of real servers on this machine, a lakeFS and a MinIO each; the user names the binaries."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from adapters.s3.fast_store import FastObjectStore
from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY, Layout, Region
from sandbox.real_lakefs import VARIABLE, binary, start_lakefs, wait_until_alive
from tests import minio_pair
from tests.minio_pair import Minio
from tests.spark.server import free_port

NAMES = ("us-east-1", "eu-west-1")


@dataclass
class Site:
    """A region: its servers, and its bucket, which keeps versions."""

    region: Region
    minio: Minio
    lakefs: subprocess.Popen[bytes]

    def store(self) -> FastObjectStore:
        """A client for many calls at once."""
        keys = {"access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY}
        return FastObjectStore(
            endpoint=self.region.s3_url, region=self.region.name, force_path_style=True, pool=64, **keys
        )

    def versions(self) -> dict[str, int]:
        """Key to how often something was written there."""
        counted: dict[str, int] = {}
        pages = self.minio.s3.get_paginator("list_object_versions").paginate(Bucket=self.region.bucket)
        for key in (one["Key"] for page in pages for one in page.get("Versions", ())):
            counted[key] = counted.get(key, 0) + 1
        return counted

    def stop(self) -> None:
        """Both servers end; nothing is left of them."""
        self.lakefs.kill()
        self.lakefs.wait()
        self.minio.stop()


def missing_binaries() -> list[str]:
    """The variables that have to name a binary and don't."""
    return [name for name, path in ((VARIABLE, binary()), ("LAKEMIRROR_TEST_MINIO", minio_pair.BINARY)) if not path]


@contextmanager
def real_sites(folder: Path) -> Iterator[tuple[Site, Site]]:
    """The source's region and the mirror's, with nothing in them; stopped in the end."""
    sites: list[Site] = []
    try:
        for name in NAMES:
            sites.append(_start(folder / name, name))
        yield sites[0], sites[1]
    finally:
        for site in sites:
            with suppress(OSError):
                site.stop()


def layout_of(*sites: Site) -> Layout:
    """As the sandbox tells of its regions."""
    return Layout("", tuple(site.region for site in sites), real_lakefs=True)


def _start(folder: Path, name: str) -> Site:
    (folder / "minio").mkdir(parents=True)
    minio = Minio(folder / "minio", keys=(ACCESS_KEY_ID, SECRET_ACCESS_KEY))
    region = Region(name, free_port(), minio.port)
    try:
        minio.bucket(region.bucket)
        lakefs = start_lakefs(str(Path(binary()).resolve()), folder / "lakefs", region, region.lakefs_port)
        wait_until_alive(lakefs, region.lakefs_url, folder / "lakefs.log")
    except BaseException:
        minio.stop()
        raise
    return Site(region, minio, lakefs)
