"""The Java libraries that a package brings along: pyspark has some hundreds."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Jar:
    """A library as a file. `group` is "" where the file does not say who published it."""

    group: str
    artifact: str
    version: str
    sha256: str


def jars(distribution: Distribution) -> Iterator[Jar]:
    """Every *.jar that the package installed."""
    for file in sorted(distribution.files or []):
        if file.suffix == ".jar":
            yield _jar(Path(str(distribution.locate_file(file))))


def _jar(path: Path) -> Jar:
    """By Maven's own record in the file, if that is of this library and not of one that was packed into it; else by the
    file's name."""
    artifact, version = _named(path.stem)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for record in _maven_records(path):
        if record.get("artifactId") == artifact and record.get("version") and record.get("groupId"):
            return Jar(record["groupId"], artifact, record["version"], digest)
    return Jar("", artifact, version, digest)


def _named(stem: str) -> tuple[str, str]:
    """`netty-buffer-4.2.13.Final` as name and version."""
    match = re.fullmatch(r"(.+?)-(\d.*)", stem)
    return (match[1], match[2]) if match else (stem, "")


def _maven_records(path: Path) -> Iterator[dict[str, str]]:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("META-INF/maven/") and PurePosixPath(name).name == "pom.properties":
                lines = archive.read(name).decode("utf-8", errors="replace").splitlines()
                yield {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
