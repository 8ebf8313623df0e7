"""From a store's event until the object is at the target of a replication rule.

`python bench/rule_latency.py [--objects N] [--rate N]` starts a demo of its own, lets its company rest, creates a rule
between two of its regions, and puts a small object at the source at a time; the event that a store would send is
posted at once. A store's own webhook comes on top: MinIO's takes up to 3 s. Nothing here fails on a slow machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import requests
from demo import Demo, running_demo
from latency import line, percentile

from sandbox.layout import ACCESS_KEY_ID, REGION_NAMES, S3, SECRET_ACCESS_KEY

BUCKET, PREFIX, COPIES = "company-bucket", "bench", "bench-copies"
SOURCE, TARGET = 0, 1
GOALS = (0.3, 1.0)
POLL_SECONDS = 0.01
PATIENCE_SECONDS = 60.0
WARM_UP = 10
API = "/service/replication/v1"


@dataclass
class Watch:
    """Notes when objects are at the target, by the listing that a reader would ask for."""

    s3: Any
    seen: dict[str, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        after = ""
        while not self._stop.wait(POLL_SECONDS):
            answer = self.s3.list_objects_v2(Bucket=BUCKET, Prefix=f"{COPIES}/", StartAfter=after)
            now = time.time()
            for item in answer.get("Contents", ()):
                self.seen.setdefault(item["Key"].removeprefix(f"{COPIES}/"), now)


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description="Measure from an event until the object is at a rule's target.")
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--rate", type=float, default=2.0, help="objects a second")
    parser.add_argument("--log", type=Path, metavar="FILE", help="keep what the demo prints")
    asked = parser.parse_args()
    with running_demo(log=asked.log) as demo:
        demo.wait(demo.is_prepared, "everything is prepared")
        demo.sandbox.pause_company()
        secrets = json.loads((demo.var / "demo" / "secrets.json").read_text())
        make_rule(demo, secrets)
        with Watch(client(demo, TARGET)) as watch:
            put(demo, secrets, watch, WARM_UP, asked.rate, "warm")
            put_at = put(demo, secrets, watch, asked.objects, asked.rate, "key")
        print_figures([watch.seen[key] - at for key, at in put_at.items()], asked.rate)


def client(demo: Demo, region: int) -> Any:
    """An S3 client of a region's store."""
    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{demo.port + S3[region]}",
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
        region_name=REGION_NAMES[region],
    )


def make_rule(demo: Demo, secrets: Mapping[str, str]) -> None:
    """A rule that is compared as seldom as may be: what arrives, an event has told of."""
    body = {
        "name": "measured",
        "source": {"region": REGION_NAMES[SOURCE], "uri": f"s3://{BUCKET}/{PREFIX}"},
        "targets": [{"region": REGION_NAMES[TARGET], "uri": f"s3://{BUCKET}/{COPIES}"}],
        "scan_every": 86_400,
    }
    keys = secrets["access_key_id"], secrets["secret_access_key"]
    answer = requests.post(f"{demo.page}{API}/rules", json=body, auth=keys, timeout=60)
    if answer.status_code != 201:
        raise SystemExit(f"the rule was refused: {answer.status_code} {answer.text[:500]}")


def put(demo: Demo, secrets: Mapping[str, str], watch: Watch, objects: int, rate: float, name: str) -> dict[str, float]:
    """Put so many objects, so many a second, and tell of each; when each was written, by key. Waits for the last."""
    s3, chance, put_at = client(demo, SOURCE), random.Random(name), dict[str, float]()
    hook = f"{demo.page}/hooks/s3/{REGION_NAMES[SOURCE]}"
    began, session = time.monotonic(), requests.Session()
    for number in range(objects):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        key = f"{name}-{number:05}"
        s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{key}", Body=chance.randbytes(200))
        put_at[key] = time.time()
        told = session.post(hook, json=event(f"{PREFIX}/{key}"), headers={"Authorization": f"Bearer {secrets['hook']}"})
        told.raise_for_status()
    demo.wait(lambda: put_at.keys() <= watch.seen.keys(), "all are at the target", seconds=PATIENCE_SECONDS)
    return put_at


def event(key: str) -> dict[str, Any]:
    """What a store posts of an object that was written."""
    s3 = {"bucket": {"name": BUCKET}, "object": {"key": key}}
    return {"Records": [{"eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": s3}]}


def print_figures(delays: list[float], rate: float) -> None:
    """Seconds, and whether the goals are reached."""
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{len(delays)} objects, {rate:g} a second; {os.cpu_count()} cores, load {load}")
    print(f"seconds after the object was written{'min':>7}{'p50':>9}{'p95':>9}{'max':>9}")
    reached = percentile(delays, 0.5) <= GOALS[0] and percentile(delays, 0.95) <= GOALS[1]
    verdict = "reached" if reached else "missed"
    print(f"{'at the target, listed':<34}{line(delays)}   goals p50 <= {GOALS[0]:g}, p95 <= {GOALS[1]:g}: {verdict}")


if __name__ == "__main__":
    main()
