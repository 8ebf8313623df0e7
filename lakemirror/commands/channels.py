"""Commands of channels, by which alerts are sent: list, create, edit, test, deliveries, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import click

from lakemirror.commands.context import LIMIT, Talk, talks
from lakemirror.errors import No
from lakemirror.output import alert_tables

AGAIN = {"never": 0, "1h": 3600, "4h": 14400, "24h": 86400}
SECRETS = {"address": "url", "signing_secret": "signing_secret", "password": "password"}
SERVER = ("host", "port", "security", "username", "sender")
_OPTIONS = (
    click.option("--address", help="URL of a webhook or of Apprise; asked for when a channel is created."),
    click.option(
        "--signing-secret", envvar="LAKEMIRROR_SIGNING_SECRET", help="Webhook: what messages are signed with."
    ),
    click.option("--host", help="Email: the SMTP server."),
    click.option("--port", type=click.IntRange(1, 65535), help="Email: its port; 587, 465 or 25 if not given."),
    click.option("--security", type=click.Choice(["starttls", "tls", "none"]), help="Email: encryption."),
    click.option("--username", help="Email: who signs in; not given: nobody."),
    click.option("--password", envvar="LAKEMIRROR_MAIL_PASSWORD", help="Email: the password of that user."),
    click.option("--from", "sender", help="Email: the sender."),
    click.option("--to", "recipients", multiple=True, help="Email: a recipient; may be repeated."),
    click.option("--least-severity", type=click.Choice(["warning", "error", "critical"]), help="Only these and worse."),
    click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind of alert; may be repeated."),
    click.option(
        "--name", "names", multiple=True, metavar="PATTERN", help="Only such mirrors and exports; repeatable."
    ),
    click.option("--region", "regions", multiple=True, metavar="PATTERN", help="Only such regions; repeatable."),
    click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="PATTERN",
        help="Only with such labels: team=sales, team=s*; repeatable.",
    ),
    click.option("--tell-again", type=click.Choice(list(AGAIN)), help="Remind while an alert stays open."),
    click.option("--enable/--disable", "enabled", default=None, help="Whether it sends messages."),
)


def _settings(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("list")
@talks
def list_channels(talk: Talk) -> None:
    """List channels, and how the last message of each went."""
    talk.tell(talk.api.pages("/channels"), alert_tables.channel_list)


@click.command()
@click.argument("channel")
@click.option("--via", type=click.Choice(["webhook", "mail", "apprise"]), default="webhook", show_default=True)
@_settings
@talks
def create(talk: Talk, channel: str, via: str, **given: Any) -> None:
    """Create a channel: a webhook, email by an SMTP server, or a service of Apprise."""
    if via != "mail":
        given["address"] = given["address"] or click.prompt("Address", hide_input=True)
    if via == "webhook":
        given["signing_secret"] = given["signing_secret"] or click.prompt("Signing secret", hide_input=True)
    if via == "mail" and given["username"]:
        given["password"] = given["password"] or click.prompt("Password", hide_input=True)
    body = {"name": channel, "kind": via, **_changes(given, via, {})}
    talk.tell(talk.api.post("/channels", body), alert_tables.created)


@click.command()
@click.argument("channel")
@_settings
@click.option("--all-alerts", is_flag=True, help="Remove all filters: severity, kinds, names, regions, labels.")
@talks
def edit(talk: Talk, channel: str, all_alerts: bool, **given: Any) -> None:
    """Edit a channel: what is not given stays as it is, secrets too."""
    now, tag = talk.api.get_with_tag(_path(channel))
    kept = ("enabled", "least_severity", "kinds", "names", "regions", "labels", "tell_again_seconds")
    body = {name: now[name] for name in kept if name in now} | ({"mail": now["mail"]} if now["mail"] else {})
    if all_alerts:
        body |= {"least_severity": "warning", "kinds": [], "names": [], "regions": []} | (
            {"labels": []} if "labels" in now else {}
        )
    changes = _changes(given, now["kind"], now["mail"] or {})
    if not changes and not all_alerts:
        raise click.UsageError("nothing to change: give at least one option")
    talk.api.put(_path(channel), body | changes, tag)
    talk.tell(talk.api.get(_path(channel)), alert_tables.edited)


@click.command()
@click.argument("channel")
@talks
def test(talk: Talk, channel: str) -> None:
    """Send a test message, and show the response."""
    answer = talk.api.post(f"{_path(channel)}/test", {})
    talk.tell(answer, alert_tables.tested)
    if not answer["ok"]:
        raise No(f"{channel} did not accept the message")


@click.command()
@click.argument("channel")
@LIMIT
@talks
def deliveries(talk: Talk, channel: str, limit: int) -> None:
    """List the messages of a channel, newest first."""
    talk.tell(talk.api.pages(f"{_path(channel)}/deliveries", limit), alert_tables.delivery_list)


@click.command()
@click.argument("channel")
@talks
def delete(talk: Talk, channel: str) -> None:
    """Delete a channel; messages that are still queued are not sent."""
    talk.api.delete(_path(channel))
    if not talk.as_json:
        click.echo(f"Channel {channel} deleted")


def _changes(given: dict[str, Any], kind: str, server: dict[str, Any]) -> dict[str, Any]:
    """What was given, as fields of the API. `server`: the mail server as it is."""
    body: dict[str, Any] = {
        field: given[name] for name, field in SECRETS.items() if given[name] and not _foreign(name, kind)
    }
    mail = {name: given[name] for name in SERVER if given[name] is not None}
    mail |= {"recipients": list(given["recipients"])} if given["recipients"] else {}
    if "security" in mail and "port" not in mail:
        server = {name: value for name, value in server.items() if name != "port"}
    body |= {"mail": server | mail} if mail else {}
    body |= {name: list(given[name]) for name in ("kinds", "names", "regions", "labels") if given[name]}
    body |= {name: given[name] for name in ("least_severity", "enabled") if given[name] is not None}
    return body | ({"tell_again_seconds": AGAIN[given["tell_again"]]} if given["tell_again"] else {})


def _foreign(name: str, kind: str) -> bool:
    """Secrets of the environment that channels of this kind don't have."""
    return (name == "signing_secret" and kind != "webhook") or (name == "password" and kind != "mail")


def _path(channel: str) -> str:
    return f"/channels/{quote(channel, safe='')}"
