"""One run of everything, from what is missing to the last process stopped."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import ClassVar

from launcher import PYTHON, ROOT, VAR, environment, java, ports
from launcher.console import Problem, console
from launcher.processes import Failed, Keeper, Process, Supervisor, inherited
from launcher.status import Status

_SAME_CTRL_C = 0.5
_LOOK_SECONDS = 0.2


class Session:
    """One run of everything. Demo and Own say what differs."""

    stages: ClassVar[dict[str, str]]

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = time.monotonic()
        self.supervisor = Supervisor()
        self.problem: Problem | None = None
        self.status = Status(VAR / "run" / "status.json", self.stages)
        self.env = inherited(
            LAKEMIRROR_VAR=str(VAR),
            LAKEMIRROR_SUPERVISED="1",
            LAKEMIRROR_STATUS=str(VAR / "run" / "status.json"),
            PYTHONUNBUFFERED="1",
            PYSPARK_PYTHON=str(PYTHON),
            SPARK_REMOTE=os.environ.get("SPARK_REMOTE") or f"sc://127.0.0.1:{self.spark_port}",
        )
        self.facts: dict[str, str] = {}
        self._web: Keeper | None = None
        self._told = False
        self._told_at = 0.0

    # --- what differs

    def prepare(self) -> None:
        """Everything up to starting the web process; the page is not announced before this is done."""
        raise NotImplementedError

    def login(self) -> str:
        """How to sign in, in words."""
        raise NotImplementedError

    def install_more(self) -> None:
        """What is installed after the page answers and before Spark."""

    def afterwards(self) -> None:
        """What follows once the page answers."""

    # --- the run

    def go(self) -> int:
        """Start all, wait until told to stop, stop all; the exit status."""
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, self._told_to_stop)
        self._in_background(self._conduct)
        while not (self._told or self.supervisor.stopping.wait(_LOOK_SECONDS)):
            pass
        self.supervisor.stopping.set()
        self._told_at = time.monotonic()
        signal.signal(signal.SIGINT, self._told_again)
        if self.supervisor.keeps_any:
            console.say("stopping: tasks under way may finish (Ctrl-C again kills them)")
        self.supervisor.stop()
        self.status.remove()
        if self.supervisor.keeps_any:
            console.say("everything has stopped")
        if self.problem:
            raise self.problem
        return 0

    def _told_to_stop(self, *_: object) -> None:
        """Takes no lock: a second signal may come while the first one is being handled, in the same thread."""
        self._told = True

    def _told_again(self, *_: object) -> None:
        """Kill; one Ctrl-C that comes on two ways (from the guard too, where there is no terminal) is no second one."""
        if time.monotonic() - self._told_at > _SAME_CTRL_C:
            os.kill(os.getpid(), signal.SIGKILL)  # the guard above ends all that is left

    def _in_background(self, step: Callable[[], None]) -> threading.Thread:
        """Run a step in a thread; a Problem in it stops everything."""

        def run() -> None:
            try:
                step()
            except Problem as problem:
                if not self.supervisor.stopping.is_set():
                    self.problem = problem
                self.supervisor.stopping.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def _conduct(self) -> None:
        environment.make_venv(self.supervisor.once)
        self.install("web", "the pages", megabytes=400)
        warm = environment.installed("spark")
        if warm and not self.own_spark:
            self._in_background(self._spark)
        self.remember()
        self.prepare()
        self._await_web()
        self._in_background(self._workers)
        self.install_more()
        if not warm and not self.own_spark:
            self._in_background(self._spark)
        self.afterwards()

    @property
    def stopping(self) -> bool:
        return self.supervisor.stopping.is_set()

    @property
    def spark_port(self) -> int:
        return ports.base() + 120

    @property
    def own_spark(self) -> bool:
        """Does the environment point to a Spark of the user's?"""
        return bool(os.environ.get("SPARK_REMOTE"))

    def install(self, stage: str, what: str, *, megabytes: int) -> None:
        """Install a stage's requirements, saying so only when there is something to do."""
        if not environment.installed(stage):
            console.say(f"installing {what} (requirements/{stage}.txt)")
            began = time.monotonic()
            environment.install(self.supervisor.once, stage, megabytes=megabytes)
            console.say(f"installed requirements/{stage}.txt in {time.monotonic() - began:.0f} s")

    def remember(self) -> None:
        """Keep this run's settings for `scripts/manage`; they hold secrets."""
        changes = {name: value for name, value in self.env.items() if os.environ.get(name) != value}
        path = VAR / "run" / "environment.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(changes))

    def manage(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        """Run a management command to its end."""
        command = [str(PYTHON), str(ROOT / "manage.py"), *arguments]
        return self.supervisor.once(command, self.env | (env or {}), say=f"manage.py {arguments[0]}")

    def read_config(self) -> None:
        """Check the configuration and keep its facts; Problem with the one line that names the field."""
        command = [str(PYTHON), "-m", "deployment.check"]
        try:
            self.facts = json.loads(self.supervisor.once(command, self.env))
        except Failed as failed:
            raise Problem(failed.reason) from None
        console.as_json = self.facts["log_format"] == "json"

    # --- the processes

    def start_web(self) -> None:
        command = [str(PYTHON), "-m", "gunicorn", "-c", "python:lakemirror_site.gunicorn_settings"]
        web = Process("web", [*command, "lakemirror_site.wsgi"], self.env, stop_seconds=12)
        self._web = self.supervisor.keep(web)

    def _await_web(self) -> None:
        """Say where the page answers once it does; Problem if it doesn't come up."""

        def ready() -> bool:
            if self._web and self._web.restarts >= 3:
                raise Problem("the web process doesn't start: see its lines above")
            return ports.answers(f"{self.url()}/readyz")

        if ports.wait(ready, seconds=120, stop=lambda: self.stopping):
            self._announce(self.url())
        elif not self.stopping:
            raise Problem(f"the page did not answer at {self.url()} within 120 s")

    def url(self) -> str:
        """Where a browser on this machine finds the page."""
        host, _, port = self.facts["listen_address"].rpartition(":")
        return f"http://{'127.0.0.1' if host in ('', '0.0.0.0') else host}:{port}"

    def _announce(self, url: str) -> None:
        console.say(f"the page answers after {time.monotonic() - self.began:.1f} s: {url} - {self.login()}")
        if waiting := self.status.unfinished:
            console.say(f"still being prepared (the page shows it too): {', '.join(waiting)}")

    def _workers(self) -> None:
        self.status.set("workers", "running")
        manage = [str(PYTHON), str(ROOT / "manage.py")]
        queue = self.facts["worker_queue"]
        self.supervisor.keep(Process("controller", [*manage, "controller"], self.env))
        env = self.env | {"Q_CLUSTER_NAME": queue}
        self.supervisor.keep(Process("worker", [*manage, "qcluster"], env, stop_seconds=20))
        self.status.set("workers", "ready")
        if self.own_spark:
            self.status.set("spark", "running", "your own")
            self.install("spark", "Spark's client", megabytes=1500)
            self._spark_worker()

    def _spark(self) -> None:
        """Bring Java and Spark, start the server, then the workers that use it."""
        self.status.set("spark", "running", "installing" if not environment.installed("spark") else "starting")
        try:
            java_home = java.home(self.supervisor.once)
            self.install("build", "what builds Spark", megabytes=50)
            self.install("spark", "Spark", megabytes=1500)
        except Problem as problem:
            self.status.set("spark", "failed", str(problem))
            raise
        self.status.set("spark", "running", "starting")
        env = self.env | {"JAVA_HOME": str(java_home), "LAKEMIRROR_SPARK_PORT": str(self.spark_port)}
        command = [str(PYTHON), "-m", "deployment.spark_server"]
        # It needs the configuration, which the demo's regions may still be writing.
        ports.wait(lambda: bool(self.facts), seconds=600, stop=lambda: self.stopping)
        self.supervisor.keep(Process("spark", command, env, last=True))
        if ports.wait(lambda: ports.listens(self.spark_port), seconds=180, stop=lambda: self.stopping):
            console.say(f"Spark answers after {time.monotonic() - self.began:.1f} s")
            self._spark_worker()
            self._quicken_spark(env)

    def _quicken_spark(self, env: dict[str, str]) -> None:
        """Once all is ready, prepare quicker starts of Spark, in the background and out of everybody's way."""
        ports.wait(lambda: not self.status.unfinished, seconds=600, stop=lambda: self.stopping)
        command = ["nice", "-n", "19", str(PYTHON), "-m", "deployment.spark_server", "--train"]
        try:
            self.supervisor.once(command, env, say="preparing quicker starts of Spark")
        except Failed as failed:
            console.say(str(failed))

    def _spark_worker(self) -> None:
        ports.wait(lambda: self.status.state("workers") == "ready", seconds=600, stop=lambda: self.stopping)
        env = self.env | {"Q_CLUSTER_NAME": self.facts["spark_queue"]}
        command = [str(PYTHON), str(ROOT / "manage.py"), "qcluster"]
        self.supervisor.keep(Process("spark-worker", command, env, stop_seconds=20))
        self.status.set("spark", "ready")
