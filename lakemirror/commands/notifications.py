"""Commands of alerts: list, acknowledge, snooze."""

from __future__ import annotations

import click

from lakemirror.commands.context import LIMIT, Talk, talks
from lakemirror.output import alert_tables

UNITS = {"m": 60, "h": 3600, "d": 86400}


def seconds_of(context: click.Context, parameter: click.Parameter, given: str) -> int:
    """A length of time like 30m, 4h or 7d; 0 for none."""
    if given == "0":
        return 0
    number, unit = given[:-1], given[-1:]
    if unit not in UNITS or not number.isascii() or not number.isdigit() or len(number) > 6:
        raise click.BadParameter(f"{given!r} is not a duration: use 30m, 4h, 7d, or 0", context, parameter)
    return int(number) * UNITS[unit]


@click.command("list")
@click.option("--status", type=click.Choice(["open", "closed", "all"]), default="open", show_default=True)
@LIMIT
@talks
def list_alerts(talk: Talk, status: str, limit: int) -> None:
    """List alerts, newest first."""
    query = {} if status == "all" else {"status": status}
    talk.tell(talk.api.pages("/alerts", limit, **query), alert_tables.alert_list)


@click.command()
@click.argument("alert", type=click.IntRange(1))
@click.option("--note", default="", metavar="TEXT", help="What you are doing about it.")
@talks
def acknowledge(talk: Talk, alert: int, note: str) -> None:
    """Acknowledge an alert: no reminders are sent while it stays open."""
    talk.tell(talk.api.post(f"/alerts/{alert}/acknowledge", {"note": note}), alert_tables.answered)


@click.command()
@click.argument("alert", type=click.IntRange(1))
@click.option(
    "--for", "seconds", required=True, metavar="TIME", callback=seconds_of, help="30m, 4h, 7d; 0 ends the snooze."
)
@talks
def snooze(talk: Talk, alert: int, seconds: int) -> None:
    """Snooze an alert: no reminders for that time, then one if it is still open."""
    talk.tell(talk.api.post(f"/alerts/{alert}/snooze", {"seconds": seconds}), alert_tables.answered)
