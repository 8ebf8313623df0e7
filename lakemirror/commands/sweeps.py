"""Commands about a mirror that follows its source's garbage collection: sweeps, sweep, sweep-now, approve, reject."""

from __future__ import annotations

import sys

import click

from lakemirror.commands.context import LIMIT, Talk, message, of_mirror
from lakemirror.output import sweep_tables

NUMBER = click.argument("number", type=click.IntRange(1))


@click.command()
@LIMIT
@of_mirror
def sweeps(talk: Talk, path: str, limit: int) -> None:
    """List the sweeps of a mirror that follows its source's garbage collection, the last one first."""
    talk.tell(talk.api.pages(f"{path}/sweeps", limit), sweep_tables.sweep_list)


@click.command()
@click.option("--csv", "as_csv", is_flag=True, help="Write all objects of its list as CSV.")
@of_mirror
@NUMBER
def sweep(talk: Talk, path: str, number: int, as_csv: bool) -> None:
    """Show a sweep and the objects that it deletes, or would delete if somebody approved it."""
    if as_csv:
        talk.api.download(f"{path}/sweeps/{number}", sys.stdout.buffer)
        return
    talk.tell(talk.api.get(f"{path}/sweeps/{number}"), sweep_tables.sweep_detail)


@click.command("sweep-now")
@of_mirror
def now(talk: Talk, path: str) -> None:
    """Sweep now: look through a mirror's namespace, without waiting until a week is over."""
    talk.tell(talk.api.post(f"{path}/sweeps"), message)


@click.command()
@of_mirror
@NUMBER
def approve(talk: Talk, path: str, number: int) -> None:
    """Let a sweep delete the objects of its list."""
    talk.tell(talk.api.post(f"{path}/sweeps/{number}/approve", {}), sweep_tables.sweep_row)


@click.command()
@of_mirror
@NUMBER
def reject(talk: Talk, path: str, number: int) -> None:
    """Let a sweep delete nothing."""
    talk.tell(talk.api.post(f"{path}/sweeps/{number}/reject", {}), sweep_tables.sweep_row)
