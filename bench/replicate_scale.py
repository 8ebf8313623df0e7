"""What a rule's looks cost by the size of its place: processor, requests, memory, rows, and what follows for 10^9.

`python bench/replicate_scale.py [--objects 100000 1000000] [--named 100] [--stretches 8000]`. The stores compute what
they list from a number, so that nothing is held of it; both ends are equal. Each size is a process of its own, which
does what the duty of the rule does, round by round: the first look, another one, and then names that events told.
What parsing a store's answer takes is measured by itself, and added to the table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from local_deployment import fresh_database, run_duty

PAGE = 1000
EXECUTORS = 64
BILLION = 10**9
SPLIT_AT = 250_000
"""A stretch of more keys is cut."""
PER_1000_LISTS = 0.005
"""Dollars, as AWS asks for LIST."""


@dataclass(slots=True)
class Figures:
    """Of one size. Seconds are of the processor; `megabytes`: by how much the process grew at most."""

    objects: int
    first: float = 0.0
    again: float = 0.0
    named: float = 0.0
    pages: int = 0
    rounds: int = 0
    stretches: int = 0
    megabytes: int = 0
    database: int = 0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--named", type=int, default=100)
    parser.add_argument("--stretches", type=int, default=8000)
    parser.add_argument("--only", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.only:
        print(json.dumps(asdict(measured(given.only, given.named))))
        return
    parse = parse_seconds()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; parsing a page of a listing: {parse * 1000:.1f} ms")
    figures = []
    for number in given.objects:
        command = [sys.executable, __file__, "--only", str(number), "--named", str(given.named)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        figures.append(Figures(**json.loads(done.stdout.splitlines()[-1])))
        tell(figures[-1], given.named)
    tell_billion(figures[-1], parse, planned(given.stretches), given.stretches)


# --- stores that are computed -----------------------------------------------------------------------------------------


@dataclass
class Computed:
    """A place of so many objects, each of 4 KiB, whose names are their numbers."""

    number: int
    prefix: str = ""
    store: Any = None
    pages: int = 0
    heads: int = 0

    def uri(self, key: str) -> str:
        return f"s3://computed/{key}"

    def answers(self) -> None:
        """It does."""

    def listing(self, after: str, *, dated: bool = False) -> Any:
        """A page."""
        from core.replicating.merging import Listed, Listing

        self.pages += 1
        first = self._behind(after)
        last = min(first + PAGE, self.number)
        return Listing([Listed(f"{n:012}", 4096, etag_of(n)) for n in range(first, last)], last < self.number)

    def _behind(self, after: str) -> int:
        """The number of the first object behind a key."""
        return int(after) + 1 if after else 0

    def head(self, key: str) -> Any:
        """What HEAD tells."""
        from adapters.places.reader import Seen
        from core.types import ObjectInfo

        self.heads += 1
        return Seen(ObjectInfo(key, 4096, etag_of(int(key))), None)


def etag_of(number: int) -> str:
    return f"{number * 2654435761 % 2**128:032x}"


@contextmanager
def computed(number: int) -> Iterator[list[Computed]]:
    """Both ends of a rule."""
    places = [Computed(number), Computed(number)]
    homes = {"s3://source": places[0], "s3://target": places[1]}
    with mock.patch("deployment.wiring.replication_jobs.place_of", lambda region, uri, workers=0: homes[uri]):
        yield places


def made() -> int:
    """The key of a new rule."""
    from db import clock
    from replication.models import Link, Rule
    from replication.transitions import duties, shards

    now = clock.now()
    values = {"region": "us-east-1", "uri": "s3://source", "created_at": now, "changed_at": now}
    rule = Rule.objects.create(name="scale", **values)
    Link.objects.create(rule=rule, number=1, region="eu-west-1", uri="s3://target")
    shards.begin(rule, now)
    duties.ensure(rule)
    return int(rule.pk)


# --- one size ---------------------------------------------------------------------------------------------------------


def measured(number: int, named: int) -> Figures:
    """Look through so many twice, and at some names."""
    figures = Figures(number)
    with fresh_database(), computed(number) as places:
        from replication.models import OpenObject, Rule, Shard
        from replication.transitions import touching

        rule = made()
        before = peak()
        figures.first, figures.rounds = looked(rule, 1)
        figures.pages = sum(place.pages for place in places)
        Rule.objects.filter(pk=rule).update(scan_wanted=True)
        figures.again, _ = looked(rule, 2)
        figures.megabytes = peak() - before
        figures.stretches = Shard.objects.filter(rule=rule).count()
        if OpenObject.objects.exists():
            raise SystemExit("places that are equal were not found equal")
        step = max(1, number // named)
        touching.objects_changed("us-east-1", {("source", f"{n:012}") for n in range(0, step * named, step)})
        figures.named = run_duty("replication-scan", -rule).process
        figures.database = sum(
            path.stat().st_size for path in Path(os.environ["LAKEMIRROR_TEST_VAR"]).glob("*.sqlite3")
        )
    return figures


def looked(rule: int, cycle: int) -> tuple[float, int]:
    """Until a look has come to its end: seconds of the processor, and in how many rounds."""
    from replication.models import Rule

    used, rounds = 0.0, 0
    while Rule.objects.get(pk=rule).cycle < cycle:
        used += run_duty("replication-scan", -rule).process
        rounds += 1
    return used, rounds


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def parse_seconds() -> float:
    """Of the processor, for one page as a store sends it."""
    from adapters.s3.fast_store import _page

    item = (
        "<Contents><Key>{0:012}</Key><LastModified>2026-11-27T10:00:00.000Z</LastModified>"
        "<ETag>&#34;{1}&#34;</ETag><Size>4096</Size><StorageClass>STANDARD</StorageClass></Contents>"
    )
    items = "".join(item.format(n, etag_of(n)) for n in range(PAGE))
    head = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><EncodingType>url</EncodingType>'
    body = f"{head}<IsTruncated>true</IsTruncated>{items}</ListBucketResult>".encode()
    began = time.process_time()
    for _ in range(20):
        _page(body, "list", "the store")
    return (time.process_time() - began) / 20


def planned(stretches: int) -> float:
    """Seconds that planning a look through so many stretches takes."""
    with fresh_database(), computed(1):
        from db import clock
        from jobs.models import Duty
        from replication.engine import cycles
        from replication.models import Rule, Shard

        rule = Rule.objects.get(pk=made())
        now = clock.now()
        Shard.objects.filter(rule=rule).delete()
        names = [b"", *(f"{n:012}".encode() for n in range(1, stretches))]
        rows = [
            Shard(rule=rule, low=low, high=high, due_at=now, ended_at=now, objects_last=125_000, marks=marks_of(low))
            for low, high in zip(names, [*names[1:], None], strict=True)
        ]
        Shard.objects.bulk_create(rows, batch_size=400)
        Rule.objects.filter(pk=rule.pk).update(full_began_at=now, full_ended_at=now, scan_every=0)
        rule.refresh_from_db()
        lease = mock.MagicMock()
        began = time.perf_counter()
        cycles.begin(rule, lease)
        took = time.perf_counter() - began
        if not Duty.objects.exists() or not rule.spread:
            raise SystemExit("no look was planned")
        return took


def marks_of(low: bytes) -> list[str]:
    """As many as a stretch of this size has."""
    return [f"{low.decode()}{n:012}" for n in range(45)]


# --- what is told -----------------------------------------------------------------------------------------------------


def tell(figures: Figures, named: int) -> None:
    """A line."""
    each = figures.objects / 10**6
    share = figures.again / max(figures.named, 0.001)
    print(
        f"{figures.objects:,} objects: {figures.first / each:.1f} s of the processor for 10^6 in the first look, "
        f"{figures.again / each:.1f} s in the next; {figures.pages / each:,.0f} pages for 10^6, "
        f"{figures.rounds} rounds, {figures.stretches} stretches, the process grew by {figures.megabytes} MB, "
        f"tables of {figures.database:,} bytes; {named} names {figures.named:.2f} s, 1/{share:.0f} of a look",
        flush=True,
    )


def tell_billion(figures: Figures, parse: float, plan: float, stretches: int) -> None:
    """What follows for a billion objects, by the largest size."""
    times = BILLION / figures.objects
    pages = figures.pages * times
    seconds = figures.again * times + pages * parse
    print(f"10^9 objects, reckoned from {figures.objects:,}:")
    print(f"  pages listed          {pages:,.0f}, {pages / 1000 * PER_1000_LISTS:,.0f} $ at AWS")
    print(
        f"  processor             {seconds / 3600:.1f} h, of which {pages * parse / 3600:.1f} h parse what stores list"
    )
    print(f"  by {EXECUTORS} executors       {seconds / EXECUTORS / 60:.0f} min, if listing takes no longer")
    whole = figures.stretches > 1  # else the size says nothing of how long stretches are
    cut = figures.stretches * times if whole else BILLION / SPLIT_AT
    print(f"  stretches             {cut:,.0f}")
    print(f"  planning one look     {plan:.2f} s with {stretches:,} stretches")


if __name__ == "__main__":
    main()
