"""Commands that look closer: commits, commit, runs, lag, loss, unreplicated, manifest, waivers."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from urllib.parse import quote

import click

from lakemirror.commands.context import LIMIT, Talk, mirror_at, of_mirror
from lakemirror.output import detail_tables


@click.command()
@click.option("--branch", metavar="NAME", help="Only commits that this branch pointed to, in that order.")
@click.option("--stage", metavar="STAGE", help="Only commits at this stage: seen, recorded, metadata, ...")
@LIMIT
@of_mirror
def commits(talk: Talk, path: str, limit: int, branch: str | None, stage: str | None) -> None:
    """List commits and how far each has come at a mirror, the newest first."""
    talk.tell(talk.api.pages(f"{path}/commits", limit, branch=branch, stage=stage), detail_tables.commit_list)


@click.command()
@of_mirror
@click.argument("commit")
def commit(talk: Talk, path: str, commit: str) -> None:
    """Show a commit at a mirror: how far it has come, what is validated and what is missing."""
    detail = partial(detail_tables.commit_detail, mirror=mirror_at(path))
    talk.tell(talk.api.get(f"{path}/commits/{quote(commit, safe='')}"), detail)


@click.command()
@LIMIT
@of_mirror
def runs(talk: Talk, path: str, limit: int) -> None:
    """List validation runs of a mirror, the newest first."""
    talk.tell(talk.api.pages(f"{path}/runs", limit), detail_tables.run_list)


@click.command()
@LIMIT
@of_mirror
def held(talk: Talk, path: str, limit: int) -> None:
    """List merges that were held until regions had them, and heads that came without a release."""
    talk.tell(talk.api.pages(f"{path}/held-merges", limit), detail_tables.held_list)


@click.command()
@of_mirror
def lag(talk: Talk, path: str) -> None:
    """Show each branch's lag, and how much of the last 30 days it was within the target."""
    talk.tell(talk.api.pages(f"{path}/lag"), detail_tables.lag)


@click.command()
@of_mirror
def loss(talk: Talk, path: str) -> None:
    """Show what would be lost if the source failed now."""
    talk.tell(talk.api.pages(f"{path}/loss"), detail_tables.loss)


@click.command()
@of_mirror
def unreplicated(talk: Talk, path: str) -> None:
    """Count objects of the source that were never replicated, because they are older than the replication rule."""
    talk.tell(talk.api.get(f"{path}/unreplicated"), detail_tables.unreplicated)


@click.command()
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, not to stdout."
)
@click.option("--no-versions", is_flag=True, help="Leave out version ids.")
@of_mirror
def manifest(talk: Talk, path: str, output: Path | None, no_versions: bool) -> None:
    """Write these objects as a manifest for S3 Batch Replication: bucket, URL-encoded key, version id."""
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
    """List the waivers of a mirror, the newest first."""
    talk.tell(talk.api.pages(f"{path}/waivers", limit), detail_tables.waiver_list)
