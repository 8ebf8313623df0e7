"""Commands that ask: list, show, blockers, certify."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import click

from lakemirror.addresses import ALL, explained, mirrors_path
from lakemirror.commands.context import LIMIT, Talk, of_mirror, talks
from lakemirror.errors import No, WrongUsage
from lakemirror.output import mirror_tables
from lakemirror.recompute import require_same


@click.command("list")
@click.option("--repository", metavar="NAME", help="Only mirrors of this source.")
@click.option("--source-region", metavar="REGION", help="Region of that source, if not LakeMirror's own.")
@click.option("--label", multiple=True, metavar="KEY=VALUE", help="Only mirrors with this label; all of several.")
@talks
def list_mirrors(talk: Talk, repository: str | None, source_region: str | None, label: Sequence[str]) -> None:
    """List mirrors, those that need attention first."""
    if source_region and not repository:
        raise click.UsageError("--source-region has no effect without --repository")
    if repository:
        page = talk.api.pages(mirrors_path(repository), source_region=source_region, label=list(label) or None)
    else:
        with explained(talk.api):
            page = talk.api.pages(ALL, label=list(label) or None)
    talk.tell(page, mirror_tables.mirror_list)


@click.command()
@of_mirror
def show(talk: Talk, path: str) -> None:
    """Show a mirror, branch by branch."""
    talk.tell(talk.api.get(path), mirror_tables.mirror_detail)


@click.command()
@click.option("--commit", metavar="ID", help="Only what keeps this commit from being promoted.")
@click.option("--branch", metavar="NAME", help="Only what keeps this branch's newest commit from being promoted.")
@click.option("--reason", metavar="REASON", help="Only problems with this reason.")
@click.option("--cause", metavar="CAUSE", help="Only what replication has not brought for this cause, like NoRule.")
@click.option("--prefix", metavar="PREFIX", help="Only problems at paths with this prefix.")
@click.option("--kind", metavar="KIND", help="Only of this kind: object, range, metarange, record.")
@click.option("--address", metavar="ADDRESS", help="Only the object at this address.")
@click.option(
    "--group-by",
    type=click.Choice(["reason", "cause", "prefix", "object"]),
    help="Count problems by reason, cause or folder; object: each once, with the commits that lack it.",
)
@LIMIT
@of_mirror
def blockers(talk: Talk, path: str, limit: int, group_by: str | None, **only: str | None) -> None:
    """List what is missing or damaged at a mirror, each object once. Exits with 1 if there is anything.

    With --json and without --group-by: once for each commit, metarange or range that names it.
    """
    place = f"{path}/blockers"
    if group_by is None and not talk.as_json:
        page = _each_once(talk, place, limit, only)
    else:
        page = talk.api.pages(place, limit, group_by=group_by, **only)
    if group_by == "object":
        talk.tell(page, mirror_tables.missing_objects)
    else:
        groups = partial(mirror_tables.blocker_groups, name=group_by) if group_by else None
        talk.tell(page, groups or mirror_tables.blocker_list)
    if page["results"]:
        click.get_current_context().exit(No.exit_code)


def _each_once(talk: Talk, place: str, limit: int, only: dict[str, str | None]) -> dict[str, Any]:
    """Each thing once, with how many commits lack it. A server of an earlier version knows no such groups: from it
    come as many rows as ranges name the thing."""
    try:
        return talk.api.pages(place, limit, group_by="object", **only)
    except WrongUsage:
        return talk.api.pages(place, limit, **only)


@click.command()
@click.option("--check", "folder", metavar="FOLDER", help="Compare with a copy of _lakefs/ in this folder.")
@of_mirror
@click.argument("commit")
def certify(talk: Talk, path: str, commit: str, folder: str | None) -> None:
    """Print the certificate of a commit that is complete at a mirror: what was proven, and its digest.

    With --check it ends with 1 if the bytes don't give the same.
    """
    certificate = talk.api.get(f"{path}/commits/{quote(commit, safe='')}/certificate")
    if folder is not None:
        require_same(certificate, folder)
    talk.tell(certificate, partial(mirror_tables.certificate, folder=folder))
