"""Commands of passes of replication rules: resync, dry run, what there were, and how one is canceled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from lakemirror.commands.context import LIMIT, Talk, talks
from lakemirror.commands.rules import RULES, path_of, read_body
from lakemirror.errors import No
from lakemirror.output import pass_tables
from lakemirror.wait import Look, duration, may_wait, wait_until_done

Command = Callable[..., None]
WELL = ("completed", "nothing-eligible")


def _older_than(context: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
    """A length of time before now, or a moment, as the API takes it."""
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        return (datetime.now(UTC) - timedelta(seconds=duration(given))).isoformat()
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat()


def _asked(command: Command) -> Command:
    """The options that say which objects a pass is of."""
    options = (
        click.option("--prefix", metavar="PREFIX", help="Only keys that begin with this."),
        click.option(
            "--older-than",
            callback=_older_than,
            metavar="TIME",
            help="Only objects last written longer ago (7d), or before then (2026-11-01).",
        ),
        click.option("--all", "everything", is_flag=True, help="Send everything again, also what is equal."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _body(prefix: str | None, older_than: str | None, everything: bool) -> dict[str, Any]:
    given = {"prefix": prefix, "older_than": older_than, "what": "all" if everything else None}
    return {name: value for name, value in given.items() if value is not None}


@click.command()
@click.argument("rule")
@click.option("--link", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Of which link.")
@_asked
@may_wait
@talks
def resync(
    talk: Talk,
    rule: str,
    link: int,
    prefix: str | None,
    older_than: str | None,
    everything: bool,
    wait: bool,
    timeout: float | None,
) -> None:
    """Copy what a target lacks. With --wait it exits with 1 if objects could not be copied."""
    made = talk.api.post(f"{path_of(rule, link)}/resync", _body(prefix, older_than, everything))
    _tell(talk, made["id"], wait or timeout is not None, timeout)


@click.command("dry-run")
@click.argument("rule", required=False)
@click.option("--link", type=click.IntRange(1), metavar="N", help="Only to this target.")
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A rule that does not exist yet, as for create: JSON or YAML with the fields of the API.",
)
@_asked
@may_wait
@talks
def dry_run(
    talk: Talk,
    rule: str | None,
    link: int | None,
    file: Path | None,
    prefix: str | None,
    older_than: str | None,
    everything: bool,
    wait: bool,
    timeout: float | None,
) -> None:
    """Tell what would be copied, and write nothing."""
    asked = _body(prefix, older_than, everything) | ({} if link is None else {"link": link})
    if (rule is None) == (file is None):
        raise click.UsageError("give a rule, or -f with one that does not exist yet")
    if file is not None:
        if asked:
            raise click.UsageError("a rule that does not exist yet is looked through whole: leave the other options")
        made = talk.api.post(f"{RULES}/dry-run", read_body(file))
    else:
        made = talk.api.post(f"{path_of(rule or '')}/dry-run", asked)
    _tell(talk, made["id"], wait or timeout is not None, timeout)


@click.command()
@click.argument("rule")
@LIMIT
@talks
def passes(talk: Talk, rule: str, limit: int) -> None:
    """List resyncs and dry runs of a rule, the newest first."""
    talk.tell(talk.api.pages(f"{path_of(rule)}/passes", limit), pass_tables.pass_list)


@click.command("pass")
@click.argument("number", type=click.IntRange(1))
@click.option("--cancel", is_flag=True, help="End it; what it found lacking is still copied.")
@talks
def show_pass(talk: Talk, number: int, cancel: bool) -> None:
    """Show a resync or a dry run, or cancel it. Exits with 1 if it ended with failures."""
    if cancel:
        talk.api.delete(f"/passes/{number}")
    _tell(talk, number, waits=False, timeout=None)


def _tell(talk: Talk, number: int, waits: bool, timeout: float | None) -> None:
    """A pass as it is, or at its end. Exits with 1 where that is none that somebody wants."""
    if waits:
        told = wait_until_done(lambda: _look(talk.api.get(f"/passes/{number}")), f"Pass {number}", timeout)
    else:
        told = talk.api.get(f"/passes/{number}")
    talk.tell(told, pass_tables.one)
    if told["ended_at"] and told["state"] not in WELL:
        click.get_current_context().exit(No.exit_code)


def _look(told: dict[str, Any]) -> Look:
    total = told["total_objects"] or max(told["done_objects"], 1)
    text = told["message"] or f"{told['copied_objects']:,} copied, {told['failed_objects']:,} failed"
    return Look(told["ended_at"] is not None, told["done_objects"], total, text, told)


@click.command()
@click.argument("rule", required=False)
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A rule that does not exist yet, as for create: JSON or YAML with the fields of the API.",
)
@talks
def estimate(talk: Talk, rule: str | None, file: Path | None) -> None:
    """Estimate what a rule takes: requests, bytes, time, and money where prices are configured."""
    if (rule is None) == (file is None):
        raise click.UsageError("give a rule, or -f with one that does not exist yet")
    if file is not None:
        talk.tell(talk.api.post(f"{RULES}/estimate", read_body(file)), pass_tables.cost)
    else:
        talk.tell(talk.api.post(f"{path_of(rule or '')}/estimate"), pass_tables.cost)
