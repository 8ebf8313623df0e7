"""The options by which a pause is given a reason and an end; the same for mirrors and exports."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from lakemirror.commands.notifications import seconds_of

MOMENTS = click.DateTime(["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"])


def pause_terms(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the body of a pause, as `terms`."""

    @click.option("--reason", metavar="TEXT", help="Why; 200 characters at most.")
    @click.option("--for", "seconds", metavar="TIME", callback=_seconds, help="How long: 30m, 4h, 7d; 0: no end.")
    @click.option("--until", metavar="TIME", type=MOMENTS, help="Until when, in UTC, like 2026-01-31T22:00.")
    @functools.wraps(command)
    def pausing(*, reason: str | None, seconds: int | None, until: datetime | None, **more: Any) -> None:
        if seconds is not None and until is not None:
            raise click.UsageError("give one of --for and --until")
        terms: dict[str, Any] = {} if reason is None else {"reason": reason}
        if seconds is not None:
            terms |= {"for_seconds": seconds} if seconds else {"until": None}
        if until is not None:
            terms["until"] = until.replace(tzinfo=UTC).isoformat()
        command(terms=terms, **more)

    return pausing


def _seconds(context: click.Context, parameter: click.Parameter, given: str | None) -> int | None:
    return None if given is None else seconds_of(context, parameter, given)
