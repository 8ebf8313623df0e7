"""Where everything is: regions, buckets, ports, the demo's keys."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

ACCESS_KEY_ID = "AKIALAKEMIRRORDEMO"
SECRET_ACCESS_KEY = "lakemirror-demo-secret"
REGION_NAMES = ("us-east-1", "eu-west-1", "ap-southeast-2")
REPOSITORY, SECOND_REPOSITORY = "lake", "orders"
# What the demo adds to LAKEMIRROR_PORT_BASE.
WEB, CONTROL, LAKEFS, S3 = 8, 100, (101, 102, 103), (111, 112, 113)
STATE_FILE = "sandbox.json"


def port_base() -> int:
    """LAKEMIRROR_PORT_BASE, 8000 unless it is set."""
    return int(os.environ.get("LAKEMIRROR_PORT_BASE") or 8000)


@dataclass(frozen=True, slots=True)
class Region:
    """One region's servers on loopback."""

    name: str
    lakefs_port: int
    s3_port: int

    @property
    def bucket(self) -> str:
        """The region's bucket."""
        return f"lake-{self.name}"

    @property
    def lakefs_url(self) -> str:
        """lakeFS, without /api/v1."""
        return f"http://127.0.0.1:{self.lakefs_port}"

    @property
    def s3_url(self) -> str:
        """The S3 endpoint."""
        return f"http://127.0.0.1:{self.s3_port}"


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole sandbox, as `sandbox.json` keeps it for the clients."""

    control_url: str
    regions: tuple[Region, ...]
    real_lakefs: bool = False

    def region(self, name: str) -> Region:
        """KeyError for another name."""
        return {region.name: region for region in self.regions}[name]

    def save(self, folder: Path) -> None:
        """Writes the file whole or not at all."""
        write_whole(folder / STATE_FILE, json.dumps(self.as_json(), indent=1))

    def as_json(self) -> dict[str, object]:
        """What `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, object]) -> Layout:
        """The reverse of `as_json`."""
        regions = tuple(Region(**region) for region in values["regions"])  # type: ignore[attr-defined]
        return cls(str(values["control_url"]), regions, bool(values["real_lakefs"]))


def write_whole(path: Path, text: str) -> None:
    """A reader sees the old file or the new one, never a part."""
    temporary = path.with_suffix(path.suffix + ".new")
    temporary.write_text(text)
    temporary.replace(path)
