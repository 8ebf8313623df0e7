"""Replication rules by real processes that are killed all the time, between stores that go away, while people write,
overwrite, delete, tag and lock everywhere, and events are lost, doubled, late and in another order.

What must hold, judged by whole listings: the places of a rule are equal in the end; nothing is lost that nobody has
deleted or overwritten later, and nothing is deleted that nobody has deleted; what was deleted does not come back; no
reader ever meets a content that is torn or mixed; the API counts what the listings show; no upload in parts is left
over, no process has failed without a word; and then nobody writes anything any more.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.rule_fleet.deployment import Deployment
from tests.rule_fleet.events import Events
from tests.rule_fleet.findings import Findings
from tests.rule_fleet.journal import Journal
from tests.rule_fleet.layout import Group, groups
from tests.rule_fleet.people import FAILURES, Operators, Writers
from tests.rule_fleet.reader import Reader
from tests.rule_fleet.stores import Stores
from tests.rule_fleet.traffic import writes_after
from tests.rule_fleet.trouble import Trouble

WRITERS = 3
LOOK_SECONDS = 5.0
TOLD_SECONDS = 30.0
COMPARED = 2
"""So many whole comparisons end after the trouble has: the second one began after it."""
HASTE_SECONDS = 15.0


@dataclass(frozen=True)
class Plan:
    """For how long there is trouble, and then none, in minutes; how long it may take until all is up to date; how many
    deeds a second people do, and the seconds between two things that go wrong, on the average."""

    minutes: float
    quiet_minutes: float
    seed: int
    settle_minutes: float = 25.0
    rate: float = 4.0
    every: float = 10.0


@dataclass
class Report:
    """What a run came to."""

    seed: int
    deeds: Counter[str] = field(default_factory=Counter)
    trouble: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    settled: float | None = None
    quiet: float = 0.0
    reads: int = 0
    requests: int = 0
    objects: int = 0
    problems: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """A few lines for people."""
        settled = "never up to date" if self.settled is None else f"up to date {self.settled:.0f} s later"
        return [
            *(f"PROBLEM {problem}" for problem in self.problems[:40]),
            f"rules from seed {self.seed}: {self.seconds:.0f} s of trouble, {settled}, {self.quiet:.0f} s of quiet",
            f"people: {told(self.deeds)}",
            f"went wrong: {told(self.trouble)}",
            f"events: {told(self.events)}",
            f"asked of LakeMirror: {told(self.asked)}",
            f"{self.reads} objects read, {self.requests} requests of LakeMirror at the stores, {self.objects} objects "
            f"in the end; {len(self.problems)} problems",
        ]


def told(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items())) or "none"


@dataclass
class Soak:
    """One run."""

    plan: Plan
    report: Report
    deployment: Deployment
    groups: list[Group]
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        seed, stores = self.plan.seed, self.deployment.stores
        self.journal = Journal()
        self.events = Events(self.deployment, random.Random(f"{seed}-events"))
        self.writers = Writers(stores, self.groups, self.journal, self.events, random.Random(f"{seed}-writers"))
        self.operators = Operators(self.deployment, self.groups, self.journal, random.Random(f"{seed}-operators"))
        self.trouble = Trouble(self.deployment, random.Random(f"{seed}-trouble"), self.plan.every)
        self.reader = Reader(stores, self.groups, self.journal, random.Random(f"{seed}-reader"))
        self.findings = Findings(self.deployment, self.groups, self.journal, self.writers, self.trouble.kills)
        self._over = threading.Event()
        self._failed: list[str] = []

    def run(self) -> None:
        """Trouble, its end, quiet; the report has what was found."""
        self.writers.begin()
        self.deployment.start(self.groups)
        self.tell("everything runs, and the rules are created")
        self.events.start()
        self.reader.start()
        began = time.monotonic()
        with self._writing():
            self._make_trouble()
        self.report.seconds = time.monotonic() - began
        self.trouble.end()
        self.tell(f"the trouble is over: {told(self.trouble.counts)}")
        self._settle()
        self._be_quiet()
        self.reader.over.set()
        self.events.over.set()
        self.reader.join(60)
        self._conclude()

    # --- trouble ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._write, args=(number,), daemon=True) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join(120)

    def _write(self, number: int) -> None:
        chance = random.Random(f"{self.plan.seed}-{number}")
        while not self._over.wait(chance.expovariate(self.plan.rate / WRITERS)):
            try:
                self.writers.step(chance)
            except FAILURES:
                continue
            except Exception as error:
                self._failed.append(f"a writer failed: {error!r}")
                return

    def _make_trouble(self) -> None:
        until, told_at = time.monotonic() + 60 * self.plan.minutes, time.monotonic()
        operate_at = time.monotonic() + 5
        while (now := time.monotonic()) < until:
            self.trouble.step()
            if now >= operate_at:
                operate_at = now + self.operators.random.uniform(2, 12)
                self.operators.step()
            if now - told_at >= TOLD_SECONDS:
                told_at = now
                found = len(self.reader.problems) + len(self._failed)
                self.tell(
                    f"{len(self.journal.deeds)} deeds, {self.trouble.counts.total()} things went wrong, "
                    f"{self.reader.reads} objects read, {found} problems"
                )
            time.sleep(0.1)

    # --- its end ------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Wait until all links say that they are up to date, all has been compared since the trouble ended, and the
        places are equal; then until all has been compared once more, for that takes into manifests what came."""
        began = time.monotonic()
        self.writers.clear_up()
        compared: dict[str, list[str]] = {}
        marks: dict[str, str] = {}
        told_at = hasten_at = began
        while time.monotonic() - began < 60 * self.plan.settle_minutes:
            now = time.monotonic()
            self.deployment.revive(now)
            try:
                rules = self.operators.settle()
                if now >= hasten_at:
                    hasten_at = now + HASTE_SECONDS
                    self.writers.let_go()
                    for rule in (one for one in rules if one["scanning_since"] is None):
                        self.deployment.asked("POST", f"/rules/{rule['name']}/scan", {})
                behind = self._behind(rules, compared)
                behind = behind or self.findings.unequal()
            except (requests.RequestException, *FAILURES) as error:
                behind = [repr(error)]
            if not behind and self.report.settled is None:
                self.report.settled = time.monotonic() - began
                self.tell(f"up to date after {self.report.settled:.0f} s")
                marks = {rule["name"]: rule["scanned_at"] for rule in rules}
            if not behind and all(rule["scanned_at"] != marks[rule["name"]] for rule in rules):
                return
            if now - told_at >= TOLD_SECONDS:
                told_at = now
                self.tell(f"{now - began:.0f} s after the trouble: {'; '.join(behind[:4])}")
            time.sleep(LOOK_SECONDS)
        self.report.problems.append(f"not up to date after {self.plan.settle_minutes:g} minutes: {behind[:10]}")

    def _behind(self, rules: list[dict[str, Any]], compared: dict[str, list[str]]) -> list[str]:
        """Why it is not yet as it should be in the end."""
        self.operators.watch(rules)
        found = []
        for rule in rules:
            for what in ("scanned_at", "swept_at") if rule["sweep_heads_per_second"] else ("scanned_at",):
                ends = compared.setdefault(f"{rule['name']} {what}", [rule[what]])
                if rule[what] != ends[-1]:
                    ends.append(rule[what])
                if len(ends) <= COMPARED:
                    found.append(f"{rule['name']} was {what} {len(ends) - 1} times")
            for link in rule["links"]:
                known = link["foreign_objects"] is not None or not rule["markers"]
                if link["state"] != "up_to_date" or link["deletes_waiting"] or not known:
                    found.append(f"{rule['name']}/{link['number']}: {link['word']}: {link['reason']}")
            passes = self.deployment.asked("GET", f"/rules/{rule['name']}/passes?amount=20")["results"]
            found += [f"pass {one['id']} of {rule['name']} goes on" for one in passes if one["state"] == "running"]
        return found

    # --- quiet --------------------------------------------------------------------------------------------------------

    def _be_quiet(self) -> None:
        """Nobody writes anything at any store."""
        time.sleep(LOOK_SECONDS)
        before, began = self.findings.everything(), time.time()
        until = time.monotonic() + 60 * self.plan.quiet_minutes
        while time.monotonic() < until:
            self.deployment.revive(time.monotonic())
            time.sleep(1)
        self.report.quiet = time.time() - began
        written = writes_after(self.deployment.stores.logs, began)
        after = self.findings.everything()
        self.report.problems += [f"it is not quiet: {len(written)} writes: {written[:5]}"] if written else []
        changed = sorted(bucket for bucket in before if before[bucket] != after[bucket])
        self.report.problems += [f"{bucket} has changed in the quiet time" for bucket in changed]

    def _conclude(self) -> None:
        report = self.report
        report.problems += self._failed + self.reader.problems + self.operators.problems
        report.problems += self.deployment.died + self.findings.all(self.reader)
        report.problems = list(dict.fromkeys(report.problems))
        report.deeds, report.trouble = self.writers.counts, self.trouble.counts
        report.events, report.asked = self.events.counts, self.operators.counts
        report.reads, report.requests = self.reader.reads, self.findings.requests
        report.objects = self.findings.objects


def soak(folder: Path, database: str, plan: Plan, tell: Callable[[str], None] = lambda line: None) -> Report:
    """One run from its beginning to its end; nothing stays behind. `database`: a URL of PostgreSQL; "": SQLite."""
    report = Report(plan.seed)
    stores = Stores(folder, plan.seed)
    deployment: Deployment | None = None
    try:
        chosen = groups(exact=stores.real)
        stores.make_buckets(chosen)
        deployment = Deployment(folder, database, stores)
        one = Soak(plan, report, deployment, chosen, tell)
        try:
            one.run()
        finally:
            one.journal.save(folder / "journal.jsonl")
    finally:
        if deployment is not None:
            deployment.close()
        stores.stop()
    return report
