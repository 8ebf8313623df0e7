"""What a check needs to know, as plain values that may stand in a plan: no secrets."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass

from adapters.objects import keys_from_environment
from adapters.objects_fast import FastObjectStore
from core.presence import Depth

BLOCK, ALLOW = "block", "allow"


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """A destination and how deep to look.

    `region` picks the credentials in the executors' environment and, unless `store_region` differs, the S3 region;
    `page_worth`: as many HEADs as a page of LIST may cost; `looked_up_at_once`: objects that share listings in a task.
    """

    namespace: str
    region: str = ""
    endpoint: str = ""
    store_region: str = ""
    force_path_style: bool = True
    depth: str = Depth.ETAG.value
    imported: str = BLOCK
    metadata_prefix: str = "_lakefs"
    page_worth: int = 20
    threads: int = 16
    tries: int = 4
    ranges_per_task: int = 0
    looked_up_at_once: int = 200_000

    def uri_of(self, address: str) -> str:
        """Where a relative address lies."""
        return f"{self.namespace.rstrip('/')}/{address}"

    def metadata_uri(self, file_id: str) -> str:
        """Where a range of this id lies."""
        return self.uri_of(f"{self.metadata_prefix}/{file_id}")


@functools.lru_cache(maxsize=4)
def store_of(settings: CheckSettings) -> FastObjectStore:
    """The destination's store, one client per process. Credentials come from the environment."""
    keys = keys_from_environment(settings.region)
    return FastObjectStore(
        endpoint=settings.endpoint,
        region=settings.store_region or settings.region,
        force_path_style=settings.force_path_style,
        tries=settings.tries,
        pool=settings.threads + 4,
        **({} if keys is None else asdict(keys)),
    )
