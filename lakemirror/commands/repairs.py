"""Commands that help a mirror on: retry, repair, prioritise, reset-branch, waive, withdraw."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import quote

import click

from lakemirror.commands.context import Talk, message, mirror_at, of_mirror
from lakemirror.output import detail_tables


@click.command()
@click.option("--id", "ids", type=click.IntRange(1), multiple=True, metavar="ID", help="This one; may be repeated.")
@click.option("--reason", metavar="REASON", help="Everything with this reason.")
@click.option("--all", "everything", is_flag=True, help="Everything missing at the mirror.")
@of_mirror
def retry(talk: Talk, path: str, ids: Sequence[int], reason: str | None, everything: bool) -> None:
    """Check now for what is missing, instead of at its next turn."""
    if [bool(ids), bool(reason), everything].count(True) != 1:
        raise click.UsageError("give one of --id, --reason and --all")
    body = {"ids": list(ids)} if ids else {"reason": reason} if reason else {}
    talk.tell(talk.api.post(f"{path}/blockers/retry", body), message)


@click.command()
@click.option("--id", "ids", type=click.IntRange(1), multiple=True, metavar="ID", help="This one; may be repeated.")
@click.option("--address", "addresses", multiple=True, metavar="ADDRESS", help="This address; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="All that is missing now.")
@click.option("--replace", is_flag=True, help="Not what is missing, but what arrived with other content.")
@click.option("--stop", is_flag=True, help="Copy no more of what somebody asked for.")
@of_mirror
def bring(talk: Talk, path: str, ids: Sequence[int], addresses: Sequence[str], everything: bool, **which: bool) -> None:
    """Have LakeMirror copy, once, what is missing now and the stores' replication has not brought.

    That ends as soon as all of it is there, at the latest after 24 hours. What is missing later is left to the stores'
    replication, and shown as missing. --stop ends it at once."""
    replace, stop = which["replace"], which["stop"]
    chosen = [bool(ids), bool(addresses), everything, stop].count(True)
    if chosen != 1 or (stop and replace):
        raise click.UsageError("give one of --id, --address, --all and --stop")
    if stop:
        talk.tell(talk.api.post(f"{path}/bring/stop"), message)
        return
    body: dict[str, object] = {"blockers": list(ids)} if ids else {"addresses": list(addresses)}
    body = {"all": True} if everything else body
    talk.tell(talk.api.post(f"{path}/bring", body | ({"replace": True} if replace else {})), message)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only print what is missing, who brings it and what it would cost.")
@of_mirror
@click.argument("commit")
def repair(talk: Talk, path: str, commit: str, dry_run: bool) -> None:
    """Check now for everything a commit lacks, and copy and validate it before others."""
    answer = talk.api.post(f"{path}/commits/{quote(commit, safe='')}/repair", {"dry_run": dry_run})
    talk.tell(answer, partial(detail_tables.repair_plan, mirror_at(path)) if dry_run else message)


@click.command()
@click.option("--commit", metavar="ID", help="This commit (full id).")
@click.option("--branch", metavar="NAME", help="The commit that this branch of the source points to now.")
@of_mirror
def prioritise(talk: Talk, path: str, commit: str | None, branch: str | None) -> None:
    """Copy and validate a commit before everything else."""
    if bool(commit) == bool(branch):
        raise click.UsageError("give one of --commit and --branch")
    answer = talk.api.post(f"{path}/prioritise", {"commit": commit} if commit else {"branch": branch})
    talk.tell(answer, detail_tables.prioritised)


@click.command("reset-branch")
@of_mirror
@click.argument("branch")
def reset_branch(talk: Talk, path: str, branch: str) -> None:
    """Revert uncommitted changes that somebody forced onto a branch of the mirror."""
    talk.tell(talk.api.post(f"{path}/reset-branch", {"branch": branch}), message)


@click.command()
@click.option("--reason", required=True, metavar="TEXT", help="Why this is acceptable; recorded in the audit log.")
@click.option(
    "--object",
    "objects",
    multiple=True,
    metavar="ADDRESS",
    help="Waive this object for all commits that hold it, also later ones; may be repeated.",
)
@of_mirror
@click.argument("commits", nargs=-1, metavar="[COMMIT...]")
def waive(talk: Talk, path: str, commits: Sequence[str], objects: Sequence[str], reason: str) -> None:
    """Waive commits (full ids) or objects: accept that the mirror can't read them, so that descendants are promoted."""
    if bool(commits) == bool(objects):
        raise click.UsageError("give commits or --object")
    body = {"objects": list(objects)} if objects else {"commits": list(commits)}
    talk.tell(talk.api.post(f"{path}/waivers", body | {"reason": reason}), detail_tables.waived)


@click.command()
@of_mirror
@click.argument("waiver", type=click.IntRange(1))
def withdraw(talk: Talk, path: str, waiver: int) -> None:
    """Withdraw a waiver: what is not promoted yet waits for those commits or objects again."""
    talk.api.delete(f"{path}/waivers/{waiver}")
    if not talk.as_json:
        click.echo(f"waiver {waiver} is withdrawn; no branch is moved back")
