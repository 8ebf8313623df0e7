"""The ranges that kept metaranges name."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from core.errors import LakeMirrorError
from core.sweeping import NothingGoes
from core.text.phrases import SHORT_ID
from deployment.wiring import clients
from graveler.errors import FormatError
from graveler.metarange import RangeRef
from mirrors.models import Mirror
from mirrors.queries.metarange_cache import parse
from mirrors.queries.metaranges import metadata_uri, ranges_named

THREADS = 8


def ranges_of(mirror: Mirror, metaranges: Collection[str]) -> dict[str, int]:
    """The ids of all ranges that these metaranges name, and how many entries each has. Raises NothingGoes for one that
    can be read at neither side: nobody knows what it names."""
    found: dict[str, int] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for refs in pool.map(partial(_refs, mirror), sorted(metaranges)):
            found.update((ref.id, ref.count) for ref in refs)
    return found


def _refs(mirror: Mirror, metarange_id: str) -> Collection[RangeRef]:
    refs = ranges_named(mirror, metarange_id)
    if refs is not None:
        return refs
    uri = metadata_uri(mirror.source.namespace, metarange_id)
    try:
        return parse(clients.objects(mirror.source.region).get(uri), metarange_id, uri).ranges
    except (LakeMirrorError, FormatError) as error:
        raise NothingGoes(
            f"nobody knows what the metarange {metarange_id[:SHORT_ID]} names, for it can be read at neither side"
        ) from error
