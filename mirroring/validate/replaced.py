"""What is there and wrong for one commit may be right for another, which names the same address: then it stays.

Whoever may stage an entry names its address, and by any path. So every range that has looked for such an address, or
builds on one that has, is read right before something is written over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from core.errors import NotFound
from core.mirroring.doubt import KnownRange, address_crc, looked_for
from core.mirroring.object_check import plain_etag
from core.ports import ObjectStore
from core.sweeping import named_below
from deployment.wiring import clients
from graveler.columns import is_full
from graveler.errors import FormatError
from graveler.ranges import read_range_columns
from mirrors.models import Blocker, Mirror
from mirrors.queries.metaranges import metadata_uri

READERS = 8
MOST_READ = 2000
"""Where more ranges may name what is to be written over nothing is: to read them would take too long."""
Named = tuple[str, int, str]
"""An address below the namespace, and the size and plain ETag that an entry gives it."""


def named_otherwise(mirror: Mirror, rows: Iterable[Blocker]) -> Mapping[str, str]:
    """Of objects that are to be replaced those that must stay, by address, and why: a range names them with another
    size or ETag. Raises what keeps a range that may name one from being read."""
    said = {row.address: (row.size or 0, plain_etag(row.etag)) for row in rows if row.kind == Blocker.Kind.OBJECT}
    if not said:
        return {}
    ranges = _that_may_name(mirror, said.keys())
    if len(ranges) > MOST_READ:
        return dict.fromkeys(said, f"{len(ranges)} ranges may name it, too many to read all of them")
    read = partial(_named, clients.objects(mirror.region), mirror.namespace, frozenset(said))
    with ThreadPoolExecutor(READERS) as pool:
        found = [named for some in pool.map(read, sorted(ranges)) for named in some]
    others = {address for address, size, etag in found if (size, etag) != said[address]}
    return dict.fromkeys(others, "another commit says something else of it, and what is there may be right for that")


def _that_may_name(mirror: Mirror, addresses: Collection[str]) -> set[str]:
    """By whatever path, itself or by what it builds on."""
    forms = {form for one in addresses for form in (one, *(f"{at}/{one}" for at in _places(mirror.namespace)))}
    wanted = {address_crc(form) for form in forms}
    built_on: dict[str, list[str]] = defaultdict(list)
    ahead: list[str] = []
    rows = mirror.coverage.filter(looked__isnull=False).values_list("range_id", "looked", "bases")
    for range_id, looked, bases in rows.iterator():
        for base in bases:
            built_on[base].append(range_id)
        if looked_for(KnownRange(range_id, b"", b"", bytes(looked), bases), wanted):
            ahead.append(range_id)
    reached = set(ahead)
    while ahead:
        new = set(built_on[ahead.pop()]) - reached
        reached |= new
        ahead += new
    return reached


def _places(namespace: str) -> Iterable[str]:
    """As an imported object's entry may write the namespace."""
    below = namespace.partition("://")[2]
    return (f"s3://{below}", f"s3a://{below}")


def _named(store: ObjectStore, namespace: str, addresses: Set[str], range_id: str) -> list[Named]:
    """What a range says of these addresses; nothing where its file is not there, or damaged: no commit that needs it is
    whole then. Raises what else keeps it from being read."""
    uri = metadata_uri(namespace, range_id)
    try:
        columns = read_range_columns(store.get(uri), expected_id=range_id, file=uri)
    except (NotFound, FormatError):
        return []
    address, full = columns.column("address"), is_full(columns)
    own = pc.is_in(address, pa.array(sorted(addresses), address.type))
    chosen = columns.filter(pc.or_(full, own)).select(["address", "size", "etag"]).to_pylist()
    imported = {one: named_below(namespace, one) for one in address.filter(full).to_pylist()}
    return [
        (name, row["size"], plain_etag(row["etag"]))
        for row in chosen
        for name in addresses & imported.get(row["address"], {row["address"]})
    ]
