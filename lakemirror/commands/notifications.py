"""Commands of alerts and of the channels by which they are told: list, acknowledge, snooze; list, create, test, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import click

from lakemirror.commands.context import LIMIT, Talk, talks
from lakemirror.errors import No
from lakemirror.output import alert_tables

UNITS = {"m": 60, "h": 3600, "d": 86400}


def _seconds(context: click.Context, parameter: click.Parameter, given: str) -> int:
    """A length of time like 30m, 4h or 7d; 0 for none."""
    if given == "0":
        return 0
    number, unit = given[:-1], given[-1:]
    if unit not in UNITS or not number.isascii() or not number.isdigit() or len(number) > 6:
        raise click.BadParameter(f"{given!r} is no length of time: write 30m, 4h, 7d, or 0", context, parameter)
    return int(number) * UNITS[unit]


@click.command("list")
@click.option("--status", type=click.Choice(["open", "closed", "all"]), default="open", show_default=True)
@LIMIT
@talks
def list_alerts(talk: Talk, status: str, limit: int) -> None:
    """List alerts, the newest first."""
    query = {} if status == "all" else {"status": status}
    talk.tell(talk.api.pages("/alerts", limit, **query), alert_tables.alert_list)


@click.command()
@click.argument("alert", type=click.IntRange(1))
@click.option("--note", default="", metavar="TEXT", help="What you are doing about it.")
@talks
def acknowledge(talk: Talk, alert: int, note: str) -> None:
    """Acknowledge an alert: no further messages until it closes."""
    talk.tell(talk.api.post(f"/alerts/{alert}/acknowledge", {"note": note}), alert_tables.answered)


@click.command()
@click.argument("alert", type=click.IntRange(1))
@click.option(
    "--for", "seconds", required=True, metavar="TIME", callback=_seconds, help="30m, 4h, 7d; 0 ends a snooze."
)
@talks
def snooze(talk: Talk, alert: int, seconds: int) -> None:
    """Snooze an alert: no messages for a while, then again if it is still open."""
    talk.tell(talk.api.post(f"/alerts/{alert}/snooze", {"seconds": seconds}), alert_tables.answered)


@click.command("list")
@talks
def list_channels(talk: Talk) -> None:
    """List channels: where alerts are sent, and how the last message went."""
    talk.tell(talk.api.pages("/channels"), alert_tables.channel_list)


@click.command()
@click.argument("channel")
@click.option("--address", prompt=True, hide_input=True, help="URL to post messages to; asked for if not given.")
@click.option(
    "--signing-secret",
    envvar="LAKEMIRROR_SIGNING_SECRET",
    prompt=True,
    hide_input=True,
    help="Secret that signs them; else LAKEMIRROR_SIGNING_SECRET, else you are asked for it.",
)
@click.option(
    "--least-severity", type=click.Choice(["warning", "error", "critical"]), help="Only this severity or worse."
)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind of alert; may be repeated.")
@click.option(
    "--name", "names", multiple=True, metavar="PATTERN", help="Only mirrors and exports of this name; repeatable."
)
@click.option("--region", "regions", multiple=True, metavar="PATTERN", help="Only these regions; may be repeated.")
@click.option("--tell-again", type=click.Choice(["never", "1h", "4h", "24h"]), default="never", show_default=True)
@talks
def create(
    talk: Talk,
    channel: str,
    *,
    address: str,
    signing_secret: str,
    least_severity: str | None,
    tell_again: str,
    **lists: Sequence[str],
) -> None:
    """Create a channel: a webhook to which alerts are posted."""
    body: dict[str, Any] = {"name": channel, "url": address, "signing_secret": signing_secret}
    body |= {name: list(values) for name, values in lists.items() if values}
    body |= {"least_severity": least_severity} if least_severity else {}
    again = 0 if tell_again == "never" else int(tell_again[:-1]) * UNITS["h"]
    talk.tell(talk.api.post("/channels", body | {"tell_again_seconds": again}), alert_tables.created)


@click.command()
@click.argument("channel")
@talks
def test(talk: Talk, channel: str) -> None:
    """Send a test message now and print the receiver's response."""
    answer = talk.api.post(f"{_path(channel)}/test", {})
    talk.tell(answer, alert_tables.tested)
    if not answer["ok"]:
        raise No(f"{channel} did not take the message")


@click.command()
@click.argument("channel")
@LIMIT
@talks
def deliveries(talk: Talk, channel: str, limit: int) -> None:
    """List what a channel has sent, the newest first."""
    talk.tell(talk.api.pages(f"{_path(channel)}/deliveries", limit), alert_tables.delivery_list)


@click.command()
@click.argument("channel")
@talks
def delete(talk: Talk, channel: str) -> None:
    """Delete a channel. Messages still waiting are not sent."""
    talk.api.delete(_path(channel))
    if not talk.as_json:
        click.echo(f"{channel} is deleted")


def _path(channel: str) -> str:
    return f"/channels/{quote(channel, safe='')}"
