"""Metaranges as the destination holds them, verified by id. What was read before saves a GET, never the HEAD."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from adapters.disk_cache import LocalCache
from core.errors import LakeMirrorError, NotFound
from core.mirroring.content_proof import Refusals
from core.mirroring.object_check import Depth, Reason, What, judge_object
from core.ports import ObjectStore
from db.chunks import chunks
from deployment.wiring import clients
from graveler.errors import FormatError
from graveler.metarange import RangeRef
from mirrors.models import Blocker, Mirror
from mirrors.models.problem import Problem
from mirrors.queries.metarange_cache import METADATA_PREFIX, Found, parse, remembered

WORKERS = 8


def metadata_uri(namespace: str, metadata_id: str) -> str:
    """Where a namespace keeps a metarange or range."""
    return f"{namespace}/{METADATA_PREFIX}/{metadata_id}"


def read_afresh(mirror: Mirror, metarange_id: str) -> Found:
    """A metarange from the destination's bytes alone, whatever is remembered of it."""
    if not metarange_id:
        return Found()
    store = clients.objects(mirror.region)
    uri = metadata_uri(mirror.namespace, metarange_id)
    read = functools.partial(_fetch, store, uri, metarange_id, clients.local_cache())
    return _tell(read, uri, Refusals(store, mirror.namespace))


def ranges_named(mirror: Mirror, metarange_id: str) -> tuple[RangeRef, ...] | None:
    """The ranges that a metarange names, from wherever it is at hand: its id pins them. None when it is nowhere.

    It says nothing of what the destination holds now.
    """
    if not metarange_id:
        return ()
    if metarange := remembered().get(metarange_id):
        return metarange.ranges
    uri, on_disk = metadata_uri(mirror.namespace, metarange_id), clients.local_cache()
    try:
        metarange = _on_disk(on_disk, metarange_id, uri)
        metarange = metarange or _fetch(clients.objects(mirror.region), uri, metarange_id, on_disk)
    except (LakeMirrorError, FormatError):
        return None
    remembered().put(metarange_id, metarange)
    return metarange.ranges


def ranges_at_hand(metarange_id: str, file: str = "") -> tuple[RangeRef, ...] | None:
    """The ranges that a metarange names, if this machine knows them: no store is asked."""
    metarange = remembered().get(metarange_id) or _on_disk(clients.local_cache(), metarange_id, file or metarange_id)
    return metarange.ranges if metarange else None


def load_metaranges(
    mirror: Mirror,
    ids: Iterable[str],
    *,
    proven: Collection[str] = (),
    afresh: Collection[str] = (),
    failed: dict[str, LakeMirrorError] | None = None,
) -> dict[str, Found]:
    """The metaranges of `ids` as they stand at a mirror's destination.

    Those that are `proven` (by a row that says so) are taken from memory; all others are asked for. What the store
    refuses of one is told of that one; a store that can't be asked as a whole raises (Unreachable, Denied...): that is
    not "missing". With `failed` one that can't be asked for is noted there and left out. Those to be read `afresh`, and
    those with a problem, are read whatever a HEAD says: it does not tell that nobody can read them.
    """
    wanted, cache = set(ids), remembered()
    metaranges = {i: known for i in wanted.intersection(proven) if (known := cache.get(i))} | {"": Found()}
    rest = sorted(wanted - metaranges.keys())
    store = clients.objects(mirror.region)
    to_read = _with_problem(mirror, rest).union(afresh)
    refusals = Refusals(store, mirror.namespace)
    load = functools.partial(_load, store, mirror.namespace, clients.local_cache(), refusals, to_read)
    with ThreadPoolExecutor(max_workers=max(1, min(WORKERS, len(rest)))) as pool:
        for metarange_id, result in zip(rest, pool.map(functools.partial(_attempt, load), rest), strict=True):
            if isinstance(result, LakeMirrorError):
                if failed is None:
                    raise result
                failed[metarange_id] = result
                continue
            metaranges[metarange_id] = result
            if not result.reason:
                cache.put(metarange_id, result)
    return metaranges


def _attempt(load: Callable[[str], Found], metarange_id: str) -> Found | LakeMirrorError:
    try:
        return load(metarange_id)
    except LakeMirrorError as error:
        return error


def problem_of(metarange_id: str, metarange: Found, *, damage: bool = False) -> Problem | None:
    """What stands in the way of a metarange's commits; `damage`: it had been there and right."""
    if metarange.verdict is None:
        return None
    reason, detail = metarange.verdict
    address = f"{METADATA_PREFIX}/{metarange_id}"
    return Problem(Blocker.Kind.METARANGE, metarange_id, address, reason, detail=detail, damage=damage)


def _with_problem(mirror: Mirror, metarange_ids: Sequence[str]) -> set[str]:
    noted = set[str]()
    for some in chunks(metarange_ids):
        rows = mirror.blockers.filter(kind=Blocker.Kind.METARANGE, holder_id__in=some).order_by()
        noted.update(rows.values_list("holder_id", flat=True))
    return noted


def _load(
    store: ObjectStore,
    namespace: str,
    on_disk: LocalCache,
    refusals: Refusals,
    to_read: Collection[str],
    metarange_id: str,
) -> Found:
    uri = metadata_uri(namespace, metarange_id)
    look = _fetch if metarange_id in to_read else _look
    return _tell(functools.partial(look, store, uri, metarange_id, on_disk), uri, refusals)


def _look(store: ObjectStore, uri: str, metarange_id: str, on_disk: LocalCache) -> Found:
    known = remembered().get(metarange_id) or _on_disk(on_disk, metarange_id, uri)
    if known is not None and _is_there(store, uri, known):
        return known
    return _fetch(store, uri, metarange_id, on_disk)


def _tell(read: Callable[[], Found], uri: str, refusals: Refusals) -> Found:
    """What a reading gives, or why it gives nothing."""
    try:
        return read()
    except NotFound:
        return Found(reason=Reason.METARANGE_MISSING, detail=f"{uri} has not arrived")
    except FormatError as error:
        return Found(reason=Reason.METARANGE_DAMAGED, detail=str(error))
    except LakeMirrorError as error:
        reason, detail = refusals.of_key(error, What.METARANGE)
        return Found(reason=reason, detail=detail)


def _on_disk(on_disk: LocalCache, metarange_id: str, uri: str) -> Found | None:
    """The metarange from the local disk, if that is whole."""
    data = on_disk.get(metarange_id)
    try:
        return None if data is None else parse(data, metarange_id, uri)
    except FormatError:
        return None


def _is_there(store: ObjectStore, uri: str, known: Found) -> bool:
    """Whether the destination holds the very same bytes now: a HEAD tells, but where an ETag is no MD5 of the content
    (encryption by KMS, several parts). Then the file is fetched."""
    info = store.head(uri)
    if info is None or not info.etag_is_content:
        return False
    return judge_object(info, size=known.size, etag=known.md5, depth=Depth.ETAG) is None


def _fetch(store: ObjectStore, uri: str, metarange_id: str, on_disk: LocalCache) -> Found:
    data = store.get(uri)
    metarange = parse(data, metarange_id, uri)
    on_disk.put(metarange_id, data)
    return metarange
