"""The control API: JSON over HTTP on loopback, for `ctl`, the tests and the demo."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import requests
from flask import Flask, request
from werkzeug.exceptions import HTTPException

from sandbox.bulk import Bulk, bulk_import
from sandbox.company import Company
from sandbox.faults import Mode
from sandbox.lakefs_http import LakeFSError
from sandbox.layout import Layout
from sandbox.replication import Replicator
from sandbox.rules import Action, Rule
from sandbox.side_door import SideDoor


@dataclass
class Worker:
    """A company and the thread that lets it work. Steps told from outside and its own never overlap.

    `paused` is for all of them. `pace`: how many times as long it rests as it is told to.
    """

    company: Company
    paused: threading.Event
    pace: float = 1.0
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def steps(self, count: int) -> list[str]:
        """Lets it do a number of things at once; gives what it did."""
        with self.lock:
            return [done for _ in range(count) if (done := self.company.try_step())]

    def run(self, interval: float) -> None:
        """Works by itself."""
        while not self.stop.wait(self.company.pause_seconds(interval * self.pace)):
            if not self.paused.is_set():
                self.steps(1)


def make_control(layout: Layout, replicator: Replicator, workers: Sequence[Worker]) -> Flask:
    """The WSGI application. Steps are told to the first of the workers; all of them pause."""
    worker = workers[0]
    app = Flask(__name__)
    _replication(app, replicator)
    _services(app, layout)
    _company(app, worker)

    @app.get("/status")
    def status() -> Any:
        return {
            "layout": layout.as_json(),
            "replication": replicator.describe(),
            "faults": {region.name: SideDoor(region.s3_url).faults() for region in layout.regions},
            "company": {"working": not worker.paused.is_set() and not worker.stop.is_set()},
        }

    @app.post("/bulk")
    def bulk() -> Any:
        return {"commit": bulk_import(layout, Bulk(**_told()))}

    @app.errorhandler(Exception)
    def refused(error: Exception) -> Any:
        known = (TypeError, ValueError, KeyError, LakeFSError, HTTPException, requests.RequestException)
        if not isinstance(error, known):
            app.logger.exception("control")
        code = error.code if isinstance(error, HTTPException) else 400 if isinstance(error, known) else 500
        return {"message": str(error) or repr(error)}, code or 500

    return app


def _told() -> dict[str, Any]:
    values = request.get_json() if request.data else {}
    if not isinstance(values, dict):
        raise ValueError("expected a JSON object")
    return values


def _replication(app: Flask, replicator: Replicator) -> None:
    @app.post("/replication/rules")
    def arm() -> Any:
        told = _told()
        replicator.arm(Rule(**told | {"action": Action(told["action"])}))
        return replicator.describe()

    @app.post("/replication/release")
    def release() -> Any:
        return {"released": replicator.release(Rule(**_told() | {"action": Action.HOLD}))}

    @app.post("/replication/timing")
    def timing() -> Any:
        replicator.tell(**_told())
        return replicator.describe()

    @app.post("/replication/wait")
    def wait() -> Any:
        return {"settled": replicator.wait(float(_told().get("seconds", 10.0)))}


def _services(app: Flask, layout: Layout) -> None:
    @app.post("/faults")
    def faults() -> Any:
        told = _told()
        Mode(told["mode"])
        names = [name] if (name := told.pop("region", "")) else [region.name for region in layout.regions]
        return {name: SideDoor(layout.region(name).s3_url).tell(told) for name in names}

    @app.post("/policy")
    def policy() -> Any:
        told = _told()
        found = [region.name for region in layout.regions if SideDoor(region.s3_url).policy(told)]
        if not found:
            raise ValueError(f"no region has a bucket {told['place'].partition('/')[0]}")
        return {"regions": found}


def _company(app: Flask, worker: Worker) -> None:
    @app.post("/company/pause")
    def pause() -> Any:
        worker.paused.set()
        return {"working": False}

    @app.post("/company/resume")
    def resume() -> Any:
        worker.paused.clear()
        return {"working": True}

    @app.post("/company/step")
    def step() -> Any:
        return {"done": worker.steps(int(_told().get("count", 1)))}
