"""Commands of maintenance windows, in which alerts are not sent: list, create, end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from lakemirror.commands.context import LIMIT, Talk, talks
from lakemirror.commands.notifications import seconds_of
from lakemirror.output import alert_tables


@click.command("list")
@LIMIT
@talks
def list_windows(talk: Talk, limit: int) -> None:
    """List maintenance windows, newest first."""
    talk.tell(talk.api.pages("/maintenance-windows", limit), alert_tables.window_list)


@click.command()
@click.option("--reason", required=True, help="What is being done; 200 characters at most.")
@click.option("--for", "seconds", required=True, metavar="TIME", callback=seconds_of, help="How long: 30m, 4h, 7d.")
@click.option(
    "--from",
    "starts_at",
    metavar="TIME",
    type=click.DateTime(["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]),
    help="When it begins, in UTC, like 2026-01-31T22:00; now if not given.",
)
@click.option("--name", "names", multiple=True, metavar="PATTERN", help="Only such mirrors and exports; repeatable.")
@click.option("--region", "regions", multiple=True, metavar="PATTERN", help="Only such regions; repeatable.")
@talks
def create(
    talk: Talk, *, reason: str, seconds: int, starts_at: datetime | None, names: Sequence[str], regions: Sequence[str]
) -> None:
    """Create a maintenance window: no messages are sent about what it covers."""
    begin = starts_at.replace(tzinfo=UTC) if starts_at else datetime.now(UTC)
    body = {"reason": reason, "ends_at": (begin + timedelta(seconds=seconds)).isoformat()}
    body |= {"starts_at": begin.isoformat()} if starts_at else {}
    given = {"names": list(names), "regions": list(regions)}
    talk.tell(talk.api.post("/maintenance-windows", body | given), alert_tables.window)


@click.command()
@click.argument("window", type=click.IntRange(1))
@talks
def end(talk: Talk, window: int) -> None:
    """End a maintenance window now."""
    talk.tell(talk.api.post(f"/maintenance-windows/{window}/end", {}), alert_tables.window)
