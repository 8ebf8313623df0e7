"""Commands that look closer: commits, commit, runs, lag, loss, unreplicated, manifest, waivers."""

from __future__ import annotations

import sys
from pathlib import Path
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
@of_mirror
def unreplicated(talk: Talk, path: str) -> None:
    """Count the objects that lie at the source and were never replicated: what a replication rule found there."""
    talk.tell(talk.api.get(f"{path}/unreplicated"), detail_tables.unreplicated)


@click.command()
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="This file, and not stdout.")
@click.option("--no-versions", is_flag=True, help="Leave the version ids out.")
@of_mirror
def manifest(talk: Talk, path: str, output: Path | None, no_versions: bool) -> None:
    """The manifest of these objects for S3 Batch Replication: bucket, key in URL encoding, version id."""
    query = {"versions": "false"} if no_versions else {}
    if output is None:
        talk.api.download(f"{path}/unreplicated", sys.stdout.buffer, **query)
        return
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("wb") as file:
            talk.api.download(f"{path}/unreplicated", file, **query)
        part.replace(output)
    except OSError as error:
        raise click.ClickException(f"{output} can't be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
    click.echo(f"{output} is complete", err=True)


@click.command()
@LIMIT
@of_mirror
def waivers(talk: Talk, path: str, limit: int) -> None:
    """What was waived at a mirror, the last one first."""
    talk.tell(talk.api.pages(f"{path}/waivers", limit), detail_tables.waiver_list)
