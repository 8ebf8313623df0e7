"""The processes of two deployments: started as the launcher starts them, killed at random, looked at in the end."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import yaml

from core.mirroring.promotion import MOVED_BY_OTHERS
from tests.fleet import CLOCK, REGIONS, WORLD
from tests.fleet.books import misheld, misswept, what_holds
from tests.fleet.wire import Remote

ROOT = Path(__file__).resolve().parent.parent.parent
AGED = 100
"""Checks of each kind that come of age with a loss. Commits share most objects: some of them nearly always see it."""
_TIED = [found, "--pdeathsig", "TERM", "--"] if (found := shutil.which("setpriv")) else []


@dataclass
class Member:
    """One process, and those that it starts: a session of its own."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    due: float = field(default=0.0)

    def start(self) -> None:
        """Start it; its output goes to its log."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*_TIED, *self.command],
                cwd=ROOT,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """kill -9 for the process and all that it has started."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def kill_child(self, chance: random.Random) -> bool:
        """kill -9 for one of the processes that it has started; false when there is none."""
        children = _below(self.process.pid) if self.process else []
        if children:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(children), signal.SIGKILL)
        return bool(children)

    def stop(self, seconds: float = 10.0) -> None:
        """SIGTERM, as the launcher does; what is left after that is killed."""
        if self.process is not None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        self.kill()


def _below(pid: int) -> list[int]:
    """The processes that descend from one."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *_below(child)]
    return found


class Fleet:
    """Two deployments, one per region, each a controller, two workers and what people ask of it; the world that they
    share; a reader."""

    def __init__(self, folder: Path, database: str, *, seed: int, clocks: Mapping[str, float] | None = None) -> None:
        self.folder, self.database, self.random = folder, database, random.Random(seed)
        self.socket = str(folder / "world.sock")
        self.world = Remote(self.socket, "world")
        self.kills: Counter[str] = Counter()
        self.members = [one for region in REGIONS for one in self._deployment(region, clocks or {})]
        self.beside: list[Member] = []

    def _deployment(self, region: str, clocks: Mapping[str, float]) -> list[Member]:
        manage = [sys.executable, str(ROOT / "manage.py")]
        commands = {"controller": "controller", "worker": "qcluster", "spark-worker": "qcluster", "people": "people"}
        queues = {"worker": region, "spark-worker": f"{region}-spark"}
        made = []
        for name, command in commands.items():
            told = {"Q_CLUSTER_NAME": queues[name]} if name in queues else {}
            clock = {CLOCK: str(clocks.get(f"{name} {region}", 0))}
            log = self.folder / f"{name}-{region}.log"
            made.append(Member(f"{name} {region}", [*manage, command], self._environment(region) | told | clock, log))
        return made

    def _environment(self, region: str) -> dict[str, str]:
        return {
            "DJANGO_SETTINGS_MODULE": "tests.fleet.settings",
            "LAKEMIRROR_CONFIG": str(self.folder / f"{region}.yaml"),
            "LAKEMIRROR_VAR": str(self.folder / f"var-{region}"),
            "LAKEMIRROR_ADMIN_USERNAME": "ada",
            "LAKEMIRROR_ADMIN_PASSWORD": "a password that only tests use",
            WORLD: self.socket,
        }

    def of(self, region: str) -> list[Member]:
        """The processes of a deployment."""
        return [one for one in self.members if one.name.endswith(region)]

    # Beginning and ending

    def begin(self, *, routes: int, pause: float, most_branches: int, readers: bool = True) -> None:
        """The world, the tables, the mirrors, all processes; returns once every mirror has its default branch."""
        for region in REGIONS:
            (self.folder / f"{region}.yaml").write_text(yaml.safe_dump(_configuration(region, self.database)))
        told = [self.socket, str(self.random.randrange(10**6)), str(routes), str(pause), str(most_branches)]
        self._start_beside("world", "-m", "tests.fleet.world", *told)
        self.wait(lambda: Path(self.socket).exists(), 20, "the world")
        for region in REGIONS:
            self._manage(region, "found_mirrors")
        for member in self.members:
            member.start()
        self.wait(lambda: not self.world.behind(), 60, "the mirrors' beginning")
        if readers:
            self._start_beside("reader", "-m", "tests.fleet.reader", self.socket)

    def _start_beside(self, name: str, *command: str) -> None:
        one = Member(name, [sys.executable, *command], {}, self.folder / f"{name}.log")
        one.start()
        self.beside.append(one)

    def _manage(self, region: str, *command: str) -> None:
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env={**os.environ, **self._environment(region)},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stderr[-2000:]}")

    def stop(self) -> None:
        """All processes end in good order."""
        for member in self.members:
            if member.alive and member.process:
                member.process.terminate()
        for member in self.members:
            member.stop()

    def close(self) -> None:
        """Nothing stays behind."""
        for member in [*self.members, *self.beside]:
            member.kill()

    def wait(self, done: Callable[[], Any], seconds: float, what: str) -> float:
        """Wait until something holds; gives the seconds that it took."""
        began = time.monotonic()
        while not done():
            if time.monotonic() - began > seconds:
                raise TimeoutError(f"{what} took longer than {seconds:g} s: {self.world.behind()[:5]}")
            time.sleep(0.1)
        return time.monotonic() - began

    # Trouble

    def kill_someone(self) -> None:
        """kill -9 for a controller, a whole worker, or one process of a worker."""
        member = self.random.choice([one for one in self.members if one.alive] or self.members)
        kind = member.name.split(" ")[0]
        if kind.endswith("worker") and self.random.random() < 0.4 and member.kill_child(self.random):
            self.kills[f"one process of a {kind}"] += 1
            return
        member.kill()
        member.due = time.monotonic() + self.random.uniform(0.2, 1.5)
        self.kills[kind] += 1

    def revive(self, *, all_: bool = False) -> None:
        """Start again what was killed a moment ago."""
        for member in self.members:
            if not member.alive and (all_ or member.due <= time.monotonic()):
                member.kill()
                member.start()

    def lose_something(self) -> None:
        """Something that had arrived is lost, and some of the mirror's checks come of age: so many, however long its
        history is."""
        mirror, key = self.world.lose()
        if not key:
            return
        for table in ("coverage", "metarangecoverage"):
            self._execute(
                f"UPDATE mirrors_{table} SET verify_at = now() - interval '1 second' WHERE id IN (SELECT c.id "
                f"FROM mirrors_{table} c JOIN mirrors_mirror m ON m.id = c.mirror_id "
                f"WHERE m.name = %s AND c.state = 'complete' ORDER BY random() LIMIT {AGED})",
                mirror,
            )
        self._execute(
            "UPDATE mirrors_duty SET due_at = now() FROM mirrors_mirror m "
            "WHERE kind = 'validate' AND subject = m.id AND m.name = %s",
            mirror,
        )

    def watch_losses(self) -> None:
        """Tell the world which of them the books know."""
        for mirror, key in self.world.lost():
            found = self._rows(
                "SELECT 1 FROM mirrors_blocker b JOIN mirrors_mirror m ON m.id = b.mirror_id "
                "WHERE m.name = %s AND b.address = %s LIMIT 1",
                mirror,
                key,
            )
            if found:
                self.world.known(mirror, key)

    def _execute(self, query: str, *given: Any) -> None:
        with psycopg.connect(self.database) as connection, suppress(psycopg.errors.DeadlockDetected):
            connection.execute(query, given)

    # What the books say

    def misbooked(self) -> list[str]:
        """Promotions that never took place, what is blamed on others, merges and deletions that went otherwise, and
        times that no clock of ours should give."""
        moves = {tuple(move) for move in self.world.moves()}
        rows = self._rows(
            "SELECT m.name, p.branch, p.from_commit, p.to_commit, p.why FROM mirrors_promotion p "
            "JOIN mirrors_mirror m ON m.id = p.mirror_id"
        )
        arrivals = {(mirror, branch, new) for mirror, branch, _, new in moves}
        problems = []
        for mirror, branch, old, new, why in rows:
            if why in MOVED_BY_OTHERS:
                problems.append(f"{mirror}/{branch}: somebody else is said to have moved it to {new[:8]}")
            elif (old and (mirror, branch, old, new) not in moves) or (mirror, branch, new) not in arrivals:
                problems.append(f"{mirror}/{branch}: a promotion to {new[:8]} is in the books that never was")
        problems += misheld(self._rows, self.world.released()) + misswept(self._rows, self.world.deleted())
        return problems + self._misdated()

    def what_holds(self) -> list[str]:
        """Of each mirror that is behind."""
        mirrors = {line.partition("/")[0] for line in self.world.behind()}
        return [line for mirror in sorted(mirrors) for line in what_holds(self._rows, mirror)]

    def _misdated(self) -> list[str]:
        """By the database's clock: nothing of the past lies ahead, nothing that is due lies far ahead or behind."""
        ahead = {
            "mirrors_duty": ("due_at", "1 minute"),
            "mirrors_blocker": ("look_at", "1 minute"),
            "mirrors_promotion": ("at", "2 seconds"),
            "mirrors_candidate": ("seen_at", "2 seconds"),
            "mirrors_commit": ("seen_at", "2 seconds"),
            "mirrors_run": ("started_at", "2 seconds"),
            "mirrors_sweep": ("began_at", "2 seconds"),
            "mirrors_heldmerge": ("held_at", "2 seconds"),
            "django_q_ormq": ("lock", "7 hours"),
        }
        problems = []
        for table, (column, most) in ahead.items():
            [(number,)] = self._rows(f"SELECT count(*) FROM {table} WHERE {column} > now() + interval '{most}'")
            [(old,)] = self._rows(f"SELECT count(*) FROM {table} WHERE {column} < now() - interval '12 hours'")
            problems += [f"{number} rows of {table} lie ahead by {column}"] if number else []
            problems += [f"{old} rows of {table} lie far back by {column}"] if old else []
        return problems

    def _rows(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database) as connection:
            return connection.execute(query, given or None).fetchall()


def _configuration(region: str, database: str) -> dict[str, Any]:
    """A deployment that serves its own region. Its addresses are never called: the adapters are stand-ins."""
    (other,) = set(REGIONS) - {region}
    return {
        "region": region,
        "organization_id": "fleet",
        "source_lakefs_access_key_id": "AKIA",
        "source_lakefs_secret_access_key": "never sent",
        "regional_endpoint": f"http://{region}.invalid",
        "dst_endpoints": {other: f"http://{other}.invalid"},
        "mirrors_database": {"type": "postgres", "postgres": {"connection_string": database}},
        "blockstore": {"type": "s3"},
        "auth": {"encrypt": {"secret_key": "a key that only tests use"}},
        "mirrors_manager": {"process_mirrors_interval_duration": "5s"},
        "commit_sensor": {"process_branches_duration": "1s", "log_commit_page_size": 20},
        "validator": {"run_interval": "2s", "cooldown_on_missing": "2s", "cooldown_on_error": "2s"},
        "workers": {"io": 3, "spark": 2},
        "logging": {"level": "WARNING"},
    }


@contextmanager
def fleet(folder: Path, database: str, *, seed: int, clocks: Mapping[str, float] | None = None) -> Iterator[Fleet]:
    """A fleet of which nothing stays behind."""
    made = Fleet(folder, database, seed=seed, clocks=clocks)
    try:
        yield made
    finally:
        made.close()
