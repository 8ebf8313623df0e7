"""The ledger of a rule with very many open objects: each page of them, claims, Retry, CSV, and names while it is full.

`python bench/ledger.py [--rows 1000000] [--requests 20] [--postgres] [--touched 0]` fills real tables once (SQLite, in
a folder of its own; `--postgres`: a server of its own) with open objects of one link: nine of ten pending, of which
some have failed before, the others failed or skipped. Then it asks for the lists as `pages.py` does, and lets the
ledger do what a link's duty does. `--touched`: so many names that events tell while the target is down.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

from local_deployment import fresh_database
from pages import measure, sign_in

LISTS = "/service/replication/v1/rules/many/links/1/open"
PAGE = "/replication/many/open/"
FILTERS = {
    "all": "",
    "pending": "status=pending",
    "failed": "status=failed",
    "skipped, few": "status=skipped",
    "one reason": "code=TargetRefused",
    "a reason of few": "code=KeyTooLong",
    "status and reason": "status=pending&code=TargetThrottled",
    "a folder of all": "prefix=data/",
    "a folder of few": "prefix=data/00042/",
    "failed in a folder": "status=failed&prefix=data/0",
    "few in a folder of all": "code=KeyTooLong&prefix=data/",
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--touched", type=int, default=0)
    given = parser.parse_args(arguments)
    with database(postgres=given.postgres):
        client, link = sign_in(), filled(given.rows)
        print(f"{given.rows:,} open objects, load {os.getloadavg()[0]:.1f}", flush=True)
        for name, query in FILTERS.items():
            show(name, f"{LISTS}?{query}", client, given.requests)
        show("deep", f"{LISTS}?after={middle(link)}", client, given.requests)
        show("page", PAGE, client, given.requests)
        show("page, failed", f"{PAGE}?status=failed", client, given.requests)
        show("page of the rule", "/replication/many/", client, given.requests)
        timed("CSV of all", lambda: csv(client))
        timed("claim, settle as copied", lambda: claimed(link, given.rows // 20))
        timed("claim, settle as failed", lambda: claimed(link, given.rows // 100, failed=True))
        timed("retry of a reason", lambda: retried(client, '{"code": "TargetRefused"}'))
        everything_failed(link)
        timed("retry of all, all failed", lambda: retried(client, '{"all": true}'))
        if given.touched:
            timed("names told while it is full", lambda: named(link, given.touched))


@contextmanager
def database(*, postgres: bool) -> Iterator[None]:
    """Tables of its own."""
    with ExitStack() as stack:
        if postgres:
            from tests.postgres import DATABASE, quick_server

            url = stack.enter_context(quick_server())
            os.environ |= {f"{DATABASE}TYPE": "postgres", f"{DATABASE}POSTGRES_CONNECTION_STRING": url}
        stack.enter_context(fresh_database())
        yield


# --- what is there ----------------------------------------------------------------------------------------------------


def filled(number: int) -> Any:
    """A link with so many open objects, and another rule's with a tenth of that, noted in between."""
    from db import clock
    from replication.models import Link, Rule
    from replication.transitions import duties, shards

    now, links = clock.now(), []
    for name in ("many", "other"):
        values = {"region": "us-east-1", "uri": f"s3://{name}", "created_at": now, "changed_at": now}
        rule = Rule.objects.create(name=name, **values)
        links.append(Link.objects.create(rule=rule, number=1, region="eu-west-1", uri=f"s3://{name}-copy"))
        shards.begin(rule, now)
        duties.ensure(rule)
    for first in range(0, number, 20_000):
        rows = [row(links[0], n, now) for n in range(first, min(number, first + 20_000))]
        store(links[0], rows)
        store(links[1], [row(links[1], n, now) for n in range(first, first + 2000)])
    analyzed()
    return links[0]


def row(link: Any, n: int, now: Any) -> Any:
    """The n-th object, in an order that is not the keys'."""
    from replication.models import OpenObject

    key = f"data/{n * 7919 % 1000:05}/{n:09}".encode()
    status, code = told(n)
    since = now - timedelta(seconds=3600 - n % 3600)
    due = now - timedelta(seconds=1) if status == "pending" else now + timedelta(hours=n % 24)
    more = {"status": status, "code": code, "attempts": int(bool(code)), "since": since, "next_try": due}
    return OpenObject(link=link, key=key, size=4096, etag=f"{n:032x}", **more)


def told(n: int) -> tuple[str, str]:
    """Its status, and why."""
    if n % 100_000 == 99_999:
        return "skipped", "KeyTooLong"
    if n % 10 == 9:
        return "failed", "TargetRefused"
    return "pending", "TargetThrottled" if n % 7 == 0 else ""


def store(link: Any, rows: list[Any]) -> None:
    """Rows with their counts."""
    from django.db import transaction

    from replication.models import OpenObject
    from replication.transitions.ledger import Tally

    tally = Tally()
    for one in rows:
        tally.add(one.status, one.code, one.size)
    with transaction.atomic():
        OpenObject.objects.bulk_create(rows, batch_size=400)
        tally.save(link.pk)


def analyzed() -> None:
    """As a server does by itself after so many changes; SQLite does not."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def middle(link: Any) -> int:
    from replication.models import OpenObject

    newest = OpenObject.objects.filter(link=link).latest("pk").pk
    return int(newest) // 2


def everything_failed(link: Any) -> None:
    """The worst case of a retry: each row changes."""
    from django.db import transaction
    from django.db.models import Sum

    from db import clock
    from replication.models import OpenCount, OpenObject

    with transaction.atomic():
        later = clock.now() + timedelta(hours=5)
        rows = OpenObject.objects.filter(link=link)
        number = rows.update(status="failed", code="TargetRefused", next_try=later, attempts=1)
        size = rows.aggregate(b=Sum("size"))["b"]
        OpenCount.objects.filter(link=link).delete()
        OpenCount.objects.create(link=link, status="failed", code="TargetRefused", number=number, bytes=size)
    analyzed()


# --- what is done -----------------------------------------------------------------------------------------------------


def show(name: str, path: str, client: Any, requests: int) -> None:
    """A line of a list."""
    client.get(path)
    print(f"{name:28} {measure(client, path, requests)}", flush=True)


def timed(name: str, act: Callable[[], tuple[int, str]]) -> None:
    """A line of something that is done once."""
    began, used = time.perf_counter(), time.process_time()
    number, what = act()
    took, processor = time.perf_counter() - began, time.process_time() - used
    pace = f"{number / took:9,.0f} a second" if number else ""
    print(f"{name:28} {took:6.2f} s, {processor:6.2f} s of the processor: {number:,} {what}, {pace}", flush=True)


def csv(client: Any) -> tuple[int, str]:
    """All of it as a file, and by how much that lets the process grow."""
    before, lines = peak(), 0
    for chunk in client.get(f"{LISTS}?format=csv").streaming_content:
        lines += chunk.count(b"\n")
    return lines, f"lines; the process grew by {peak() - before} MB"


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def claimed(link: Any, number: int, *, failed: bool = False) -> tuple[int, str]:
    """Rows that are due are taken, and written down, 500 at a time."""
    from django.db import transaction

    from db import clock
    from replication.models import OpenObject
    from replication.transitions import ledger
    from replication.transitions.ledger import Tried

    done = 0
    while done < number:
        rows = list(OpenObject.objects.filter(link=link.pk).due(clock.now())[:500])
        if not rows:
            break
        later = {"status": "failed", "code": "TargetRefused", "next_try": clock.now() + timedelta(days=1)}
        with transaction.atomic():
            held = ledger.hold(link.pk)
            becomes = later if failed else None
            gone = ledger.settle(held, [Tried(one.pk, one.claimed, one.etag, becomes) for one in rows])
            if gone != (0 if failed else len(rows)):
                raise SystemExit(f"{gone} of {len(rows)} objects were written down as copied")
        done += len(rows)
    return done, "objects"


def retried(client: Any, body: str) -> tuple[int, str]:
    """POST .../retry."""
    path = LISTS.replace("/open", "/retry")
    answer = client.post(path, body, content_type="application/json")
    if answer.status_code != 202:
        raise SystemExit(f"{path} answered {answer.status_code}: {answer.content!r}")
    return int(answer.json()["number"]), "objects"


def named(link: Any, number: int) -> tuple[int, str]:
    """So many names that events tell; rows stop at their cap, the rest makes its stretches dirty."""
    from replication.models import Shard, Touched
    from replication.transitions import touching

    for first in range(0, number, 1000):
        touching.objects_changed("us-east-1", {("many", f"new/{n:09}") for n in range(first, first + 1000)})
    kept = Touched.objects.filter(rule=link.rule_id).count()
    dirty = Shard.objects.filter(rule=link.rule_id, dirty=True).count()
    return number, f"names, of which {kept:,} are rows; dirty stretches: {dirty}"


if __name__ == "__main__":
    main()
