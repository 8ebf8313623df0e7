"""Promotions by real processes that are killed all the time, under faults of everything that they work with.

What must hold: no reader meets a torn commit; no branch goes where its source did not; a mirror that brings its
objects writes nothing that names what is not there; a sweep deletes nothing that a branch of either side leads to, nor
what the source has; what a held merge's answer acknowledges is whole there; no duty is held by two; each deployment
writes to its own region only; the books tell what took place; once the trouble ends all catch up, and what the source
has collected goes at the mirrors that follow that.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.fleet.fleet import Fleet, fleet

DAY = 86400.0
CLOCKS = {
    "worker eu-west-1": DAY,
    "spark-worker eu-west-1": -DAY,
    "worker us-east-1": -DAY,
    "spark-worker us-east-1": DAY,
    "people us-east-1": DAY,
    "people eu-west-1": -DAY,
}
"""Half of the workers live tomorrow, the others yesterday."""
PROMOTION_SECONDS = 60.0
CATCH_UP_SECONDS = 180.0
"""Whoever was killed last holds a lease of a minute, and what was lost last has put most of a history in question."""
SWEEP_SECONDS = 120.0
"""Of two sweeps more, and an approval that may be refused a few times."""
LOSS_EVERY = 25
"""So many promotions lie between two losses. Each puts in question all that names what was lost, most of a history: a
slow machine would do nothing else if they came by the clock."""


@dataclass
class Report:
    """What a run came to."""

    seed: int
    promotions: int = 0
    reads: int = 0
    overlaps: int = 0
    seconds: float = 0.0
    caught_up: float | None = None
    kills: Counter[str] = field(default_factory=Counter)
    faults: Mapping[str, int] = field(default_factory=dict)
    deeds: Mapping[str, int] = field(default_factory=dict)
    left_over: int = 0
    problems: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """A few lines for people."""
        rate = self.promotions / max(self.seconds, 1)
        return [
            *(f"PROBLEM {problem}" for problem in self.problems[:20]),
            f"{self.promotions} promotions from seed {self.seed} in {self.seconds:.0f} s ({rate:.1f} a second), "
            + ("not all caught up" if self.caught_up is None else f"all caught up {self.caught_up:.1f} s later"),
            f"{self.kills.total()} kills: {_told(self.kills)}",
            f"{sum(self.faults.values())} faults: {_told(self.faults)}",
            f"{_told(self.deeds)}; {self.left_over} objects left that could go",
            f"{self.reads} heads opened, {self.overlaps} harmless calls after a lease was lost, "
            f"{len(self.problems)} problems",
        ]


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items())) or "none"


def soak(
    folder: Path,
    database: str,
    *,
    promotions: int,
    seed: int,
    kill_every: float = 8.0,
    routes: int = 4,
    pause: float = 0.02,
    most_branches: int = 16,
    tell: Callable[[str], None] = lambda line: None,
) -> Report:
    """One run until there were so many promotions; a promotion is one move of a branch at the destination."""
    report = Report(seed)
    with fleet(folder, database, seed=seed, clocks=CLOCKS) as all_:
        all_.begin(routes=routes, pause=pause, most_branches=most_branches)
        began = time.monotonic()
        all_.world.begin(faulty=True)
        try:
            _trouble(all_, promotions, kill_every, tell)
        except TimeoutError as error:
            report.problems.append(str(error))
        report.promotions = all_.world.report()["promotions"]
        report.seconds = time.monotonic() - began
        all_.world.end()
        all_.revive(all_=True)
        _catch_up(all_, report)
        _sweep_up(all_, report)
        time.sleep(1)  # for what goes on although everything is where it should be, and for the reader
        all_.stop()
        _conclude(all_, report)
    return report


def _trouble(all_: Fleet, promotions: int, kill_every: float, tell: Callable[[str], None]) -> None:
    """Kill, start again, until enough was promoted, or nothing is for too long."""
    now = time.monotonic()
    kill_at, tell_at, least, seen = now + kill_every / 2, now + 30, now + PROMOTION_SECONDS, 0
    lose_at = float(LOSS_EVERY)
    while seen < promotions:
        time.sleep(0.1)
        now = time.monotonic()
        if now > kill_at:
            all_.kill_someone()
            kill_at = now + all_.random.uniform(0.5, 1.5) * kill_every
        if seen >= lose_at:
            all_.lose_something()
            lose_at = seen + all_.random.uniform(0.5, 1.5) * LOSS_EVERY
        all_.watch_losses()
        all_.revive()
        done = all_.world.report()["promotions"]
        if done > seen:
            seen, least = done, now + PROMOTION_SECONDS
        elif now > least:
            raise TimeoutError(f"no promotion for {PROMOTION_SECONDS:g} s: {all_.world.behind()[:5]}")
        if now > tell_at:
            tell_at = now + 30
            told = all_.world.report()
            deeds, problems = _told(told["deeds"]), len(told["problems"])
            tell(f"{done} promotions, {all_.kills.total()} kills, {deeds}, {problems} problems")


def _catch_up(all_: Fleet, report: Report) -> None:
    try:
        report.caught_up = all_.wait(lambda: not all_.world.behind(), CATCH_UP_SECONDS, "catching up")
    except TimeoutError:
        report.problems += [f"stuck: {line}" for line in all_.world.behind()]
        report.problems += all_.what_holds()


def _sweep_up(all_: Fleet, report: Report) -> None:
    """Whatever the source has collected goes in the end."""

    def left() -> int:
        return sum(all_.world.left_over().values())

    before = left()
    try:
        seconds = all_.wait(lambda: not left(), SWEEP_SECONDS, "sweeping up")
        report.deeds = {"seconds until all had gone": int(seconds), "objects left until then": before}
    except TimeoutError:
        report.left_over = left()
        report.problems.append(f"{report.left_over} objects of {before} that nothing leads to were never deleted")


def _conclude(all_: Fleet, report: Report) -> None:
    found = all_.world.report()
    report.reads, report.overlaps, report.faults = found["reads"], found["overlaps"], found["faults"]
    report.kills, report.deeds = all_.kills, {**found["deeds"], **report.deeds}
    report.problems += found["problems"] + all_.misbooked()
    report.problems += [f"the {one.name} died" for one in all_.beside if not one.alive]
