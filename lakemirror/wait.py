"""Waiting for work that goes on after its command: a bar for people, a line for each change in a log."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from lakemirror.errors import TimedOut, Unreachable
from lakemirror.output.formatting import clean, length

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 3.0
AWAY_SECONDS = 60.0
"""LakeMirror may be away for so long, for a restart say, before waiting ends with that."""
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Look:
    """How far it is: `part` of `whole`, what is going on in words, and the answer that says so."""

    done: bool
    part: int
    whole: int
    text: str
    answer: dict[str, Any] = field(default_factory=dict)


def duration(text: str) -> float:
    """Seconds from a length of time: "90", "90s", "10m", "2h", "1d"."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([smhd]?)", text)
    if not match:
        raise click.BadParameter(f"'{text}' is not a duration such as 90s, 10m or 2h")
    return float(match[1]) * _SECONDS[match[2]]


def may_wait(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a command whose work goes on afterwards."""
    wait = click.option("--wait", is_flag=True, help="Wait until it is done, and show progress.")
    timeout = click.option(
        "--timeout", type=duration, metavar="TIME", help="Wait no longer than this (90s, 10m, 2h); implies --wait."
    )
    return wait(timeout(command))


def wait_until_done(look: Callable[[], Look], what: str, timeout: float | None) -> dict[str, Any]:
    """Look until it is done, for the answer. Raises TimedOut, and Unreachable when nothing answers for a minute."""
    began = answered = time.monotonic()
    pause, last = FIRST_PAUSE, ""
    with _shown(what) as show:
        while True:
            try:
                seen = look()
            except Unreachable:
                if time.monotonic() - answered > AWAY_SECONDS:
                    raise
            else:
                answered, last = time.monotonic(), seen.text
                show(seen)
                if seen.done:
                    return seen.answer
            remaining = float("inf") if timeout is None else began + timeout - time.monotonic()
            if remaining <= 0:
                raise TimedOut(f"not done after {length(timeout)}. {last}")
            time.sleep(min(pause, remaining))
            pause = min(1.5 * pause, LONGEST_PAUSE)


@contextmanager
def _shown(what: str) -> Iterator[Callable[[Look], None]]:
    """On stderr, so that stdout has the answer alone."""
    if not sys.stderr.isatty():
        yield _Lines(what)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,} of {task.total:,}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[text]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
    )
    console = Console(stderr=True, highlight=False, emoji=False)
    with Progress(*columns, console=console, transient=True, expand=True) as progress:
        task = progress.add_task(escape(clean(what)), total=1, text="")

        def show(seen: Look) -> None:
            progress.update(task, completed=seen.part, total=seen.whole, text=escape(clean(seen.text)))

        yield show


class _Lines:
    """A line for each change."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._last = ""

    def __call__(self, seen: Look) -> None:
        line = f"{self.what}: {seen.part:,} of {seen.whole:,}. {clean(seen.text)}"
        if line != self._last:
            click.echo(line, err=True)
        self._last = line
