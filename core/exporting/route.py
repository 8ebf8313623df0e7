"""Which way do the files of an export go, and do they leave a region on it? Pure."""

from __future__ import annotations

from dataclasses import dataclass

CHARGED = "Stores usually charge for that"


@dataclass(frozen=True, slots=True)
class Route:
    """From a repository's region to a bucket. `bucket_region`: where its store is, "" where nobody knows; `within`: the
    store copies by itself; else files pass through the machines of the region `workers`."""

    region: str
    bucket: str
    bucket_region: str
    within: bool
    workers: str

    @property
    def crosses(self) -> bool | None:
        """Whether every file leaves a region on its way; None: nobody knows where the bucket is."""
        if self.bucket_region not in ("", self.region):
            return True
        if self.within:
            return False
        return None if not self.bucket_region and self.workers == self.region else self.workers != self.region

    @property
    def sentence(self) -> str:
        """The way in words, and what it costs."""
        bucket = f"the bucket {self.bucket}"
        if self.bucket_region not in ("", self.region):
            where = f"The repository is in {self.region}, {bucket} in {self.bucket_region}"
            return f"{where}: every file goes from one region to the other. {CHARGED}."
        if self.within:
            return f"The repository and {bucket} are in {self.region}: the store copies the files itself."
        known = f"The repository and {bucket} are in {self.region}"
        where = known if self.bucket_region else f"The repository is in {self.region}, {bucket} in another store"
        if self.crosses:
            return f"{where}: every file passes through LakeMirror in {self.workers}. {CHARGED}."
        return f"{where}: every file passes through LakeMirror."
