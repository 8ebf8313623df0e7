"""Commands that look closer: commits, commit, runs, lag, loss, waivers."""

from __future__ import annotations

from urllib.parse import quote

import click

from lakemirror.commands.context import LIMIT, Talk, of_mirror
from lakemirror.output import detail_tables


@click.command()
@click.option("--branch", metavar="NAME", help="Only those that this branch of the source pointed to, in that order.")
@click.option("--stage", metavar="STAGE", help="Only those that have come so far: seen, recorded, metadata, ...")
@LIMIT
@of_mirror
def commits(talk: Talk, path: str, limit: int, branch: str | None, stage: str | None) -> None:
    """Commits and how far each has come at a mirror, the last one seen first."""
    talk.tell(talk.api.pages(f"{path}/commits", limit, branch=branch, stage=stage), detail_tables.commit_list)


@click.command()
@of_mirror
@click.argument("commit")
def commit(talk: Talk, path: str, commit: str) -> None:
    """One commit at a mirror: how far it has come, what is covered of it, what it lacks."""
    talk.tell(talk.api.get(f"{path}/commits/{quote(commit, safe='')}"), detail_tables.commit_detail)


@click.command()
@LIMIT
@of_mirror
def runs(talk: Talk, path: str, limit: int) -> None:
    """Checks of a mirror's ranges, the last one first."""
    talk.tell(talk.api.pages(f"{path}/runs", limit), detail_tables.run_list)


@click.command()
@of_mirror
def lag(talk: Talk, path: str) -> None:
    """How late each branch of a mirror is, and how well it kept the target in the last 30 days."""
    talk.tell(talk.api.pages(f"{path}/lag"), detail_tables.lag)


@click.command()
@of_mirror
def loss(talk: Talk, path: str) -> None:
    """What would be lost if the source failed now."""
    talk.tell(talk.api.pages(f"{path}/loss"), detail_tables.loss)


@click.command()
@LIMIT
@of_mirror
def waivers(talk: Talk, path: str, limit: int) -> None:
    """What was waived at a mirror, the last one first."""
    talk.tell(talk.api.pages(f"{path}/waivers", limit), detail_tables.waiver_list)
