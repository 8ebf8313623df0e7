"""The pages over many mirrors: what the server takes for one, in how many queries, and how large a poll's answer is.

`python bench/pages.py [--mirrors 1000] [--branches 50] [--rows 10000] [--requests 20] [--profile PAGE]` fills real
tables (SQLite, in a folder of its own) with rows as the duties leave them, and asks for each page by Django's own
client: no network, no gunicorn. Of the mirrors one in twenty is behind with three branches, and one in a hundred is
blocked. The last hour of each mirror is measured; one has so many rows of measures, and there are as many closed alerts
and audit events. A page takes turns with the JSON of the same, so the ratio holds on a busy machine. Nothing here fails
on a slow machine.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import re
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from fleet import Fleet
from local_deployment import fresh_database

GOAL_SECONDS = 0.1
GOAL_BYTES = 10_000
API = "/service/replication/v1"
MIRROR_API = f"{API}/repositories/source-0001/mirrors/lake-0001"
PAGES = {
    "overview": ("/", f"{API}/overview"),
    "map": ("/map/", f"{API}/mirrors?amount=50"),
    "list": ("/mirrors/", f"{API}/mirrors?amount=50"),
    "list, filtered": ("/mirrors/?state=blocked&region=ap-south-1", f"{API}/mirrors?region=ap-south-1&amount=50"),
    "mirror": ("/mirrors/lake-0001/", MIRROR_API),
    "backlog": ("/mirrors/lake-0001/backlog/", f"{MIRROR_API}/blockers"),
    "charts, 24h": ("/mirrors/lake-0001/metrics/", f"{MIRROR_API}/metrics"),
    "charts, 90d": ("/mirrors/lake-0001/metrics/?period=90d", f"{MIRROR_API}/metrics?period=90d"),
    "jobs": ("/jobs/", f"{API}/jobs"),
    "alerts": ("/notifications/", f"{API}/alerts"),
    "audit": ("/audit/", f"{API}/audit"),
}
"""Each page, and the JSON that has the same without pictures; of lists as many mirrors as a page shows."""
METRICS = "/metrics"
PAUSE_SECONDS = 0.3
"""Between requests, so that what a process keeps grows old among them as it does among polls."""
POLL = {"HX-Request": "true", "HX-Target": "live"}


def sign_in() -> Any:
    """A client of somebody who may do everything."""
    from django.test import Client

    from rbac import services
    from rbac.models import Group
    from rbac.services import builtin

    builtin.install()
    user = services.user_create(actor="system:bench", username="bench", password="correct horse battery staple")
    services.group_add(actor="system:bench", group=Group.objects.get(name="Admins"), user=user)
    client = Client()
    client.force_login(user)
    return client


def measure(client: Any, path: str, requests: int, json: str = "") -> str:
    """A line: 95th percentiles in milliseconds, queries, and the bytes of a poll as sent and unpacked. `json`: where
    the same is without pictures; it takes turns, and the line says how many times that the page is."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    took, plain_took = [], []
    for _ in range(requests):
        time.sleep(PAUSE_SECONDS)
        took.append(_timed(client, path))
        if json:
            plain_took.append(_timed(client, json))
    with CaptureQueriesContext(connection) as captured:
        client.get(path)
    queries = len(captured)
    kept = " ".join(re.findall(r'data-kept="(\w+)"', client.get(path).content.decode()))
    poll = {**POLL, "Kept": kept}
    plain = len(client.get(path, headers=poll).content)
    sent = len(client.get(path, headers={**poll, "Accept-Encoding": "gzip"}).content)
    clock, processor = (_p95([one[n] for one in took]) for n in (0, 1))
    times = median(one[1] for one in took) / median(one[1] for one in plain_took) if plain_took else 0
    ratio = f", {times:4.1f} times its JSON" if plain_took else ""
    word = "" if clock <= GOAL_SECONDS and sent <= GOAL_BYTES else "  MISSED"
    return (
        f"p95 {clock * 1000:5.0f} ms on the clock, {processor * 1000:4.0f} ms of the processor{ratio}, "
        f"{queries:3} queries, {sent:7,} bytes a poll ({plain:,} unpacked){word}"
    )


def _p95(figures: Sequence[float]) -> float:
    return sorted(figures)[-(-len(figures) * 95 // 100) - 1]


def _timed(client: Any, path: str) -> tuple[float, float]:
    """Seconds on the clock, and of the processor."""
    started, used = time.perf_counter(), time.process_time()
    answer = client.get(path)
    took = time.perf_counter() - started, time.process_time() - used
    if answer.status_code != 200:
        raise SystemExit(f"{path} answered {answer.status_code}")
    return took


def _profile(client: Any, path: str) -> None:
    client.get(path)
    with cProfile.Profile() as profile:
        client.get(path)
    pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirrors", type=int, default=1000)
    parser.add_argument("--branches", type=int, default=50)
    parser.add_argument("--rows", type=int, default=10_000, help="measures of one mirror, closed alerts, audit events")
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--profile", choices=PAGES, help="say where the time of this page goes")
    given = parser.parse_args(arguments)
    with fresh_database():
        fleet = Fleet(given.mirrors, given.branches, given.rows)
        fleet.store()
        fleet.look_again()
        client = sign_in()
        clock, processor = _timed(client, "/")
        print(f"{given.mirrors} mirrors of {given.branches} branches, load {os.getloadavg()[0]:.1f}")
        print(f"the first page of a process: {clock * 1000:.0f} ms, {processor * 1000:.0f} ms of the processor")
        if given.profile:
            _profile(client, PAGES[given.profile][0])
            return
        for name, (path, json) in PAGES.items():
            print(f"{name:15} {measure(client, path, given.requests, json)}", flush=True)
        clock, processor = min(_timed(client, METRICS) for _ in range(3))
        told = f"{clock * 1000:5.0f} ms on the clock, {processor * 1000:4.0f} ms of the processor"
        print(f"{'metrics':15} best {told}")


if __name__ == "__main__":
    main()
