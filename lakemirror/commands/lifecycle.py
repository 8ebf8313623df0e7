"""Commands that change a mirror: create, pause, resume, sync, validate, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from lakemirror.addresses import mirror_path, mirrors_path
from lakemirror.catch_up import CatchingUp
from lakemirror.commands.context import Talk, message, of_mirror, talks
from lakemirror.commands.labels import labelled
from lakemirror.commands.pausing import pause_terms
from lakemirror.errors import No, WrongUsage
from lakemirror.output import mirror_tables
from lakemirror.wait import Look, may_wait, wait_until_done


@click.command()
@click.argument("name")
@click.option("--repository", required=True, metavar="NAME", help="The repository to mirror.")
@click.option("--source-region", metavar="REGION", help="Region of the repository, if not LakeMirror's own.")
@click.option("--region", required=True, metavar="REGION", help="Region of the mirror.")
@click.option("--storage-namespace", required=True, metavar="S3-URI", help="Where replication puts the objects.")
@click.option("--include", multiple=True, metavar="GLOB", help="Mirror branches of this name; may be repeated.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="But not those of this name; may be repeated.")
@click.option("--tags", is_flag=True, default=None, help="Mirror tags too.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Give it this label; may be repeated.")
@click.option("--history", metavar="full|head", help="Check all of a head's history, or only heads.")
@click.option("--validation-depth", metavar="DEPTH", help="How deeply objects are validated.")
@click.option(
    "--object-replication", metavar="native|managed", help="Who copies objects: a rule of the stores, or LakeMirror."
)
@click.option("--adopt", is_flag=True, default=None, help="Adopt a read-only repository that already exists.")
@click.option("--require-checks", is_flag=True, default=None, help="Only if no check of the preflight fails.")
@may_wait
@talks
def create(
    talk: Talk,
    name: str,
    repository: str,
    include: Sequence[str],
    exclude: Sequence[str],
    labels: Sequence[str],
    wait: bool,
    timeout: float | None,
    **settings: Any,
) -> None:
    """Create a mirror of a repository.

    With --wait until every branch has its first commit there, all of it checked.
    """
    globs = {name: list(given) for name, given in (("include", include), ("exclude", exclude)) if given}
    body = {"name": name, "branches": globs or None, "labels": labelled({}, labels, ()), **settings}
    mirror = talk.api.post(mirrors_path(repository), {field: value for field, value in body.items() if value})
    if wait or timeout is not None:
        mirror = _caught_up(talk, mirror_path(repository, mirror["id"]), mirror["created_at"], timeout)
    talk.tell(mirror, mirror_tables.mirror_standing)


@click.command()
@pause_terms
@of_mirror
def pause(talk: Talk, path: str, terms: dict[str, Any]) -> None:
    """Pause a mirror: no branch is moved. Records are still copied and objects validated.

    It stays paused until it is resumed; an alert tells if that is later than you say here.
    """
    talk.tell(talk.api.post(f"{path}/pause", terms), mirror_tables.mirror_standing)


@click.command()
@of_mirror
def resume(talk: Talk, path: str) -> None:
    """Resume a mirror: each branch moves straight to its newest complete commit."""
    talk.tell(talk.api.post(f"{path}/resume"), mirror_tables.mirror_standing)


@click.command()
@may_wait
@of_mirror
def sync(talk: Talk, path: str, wait: bool, timeout: float | None) -> None:
    """Sync now: check the source, and everything that is missing.

    With --wait until the mirror has what the source has now. Ends with 1 where waiting doesn't help.
    """
    asked_at = talk.api.get(path)["as_of"]
    answer = talk.api.post(f"{path}/sync")
    if wait or timeout is not None:
        talk.tell(_caught_up(talk, path, asked_at, timeout), mirror_tables.mirror_standing)
    else:
        talk.tell(answer, message)


def _caught_up(talk: Talk, path: str, asked_at: str, timeout: float | None) -> dict[str, Any]:
    """The mirror, once it has what the source had after that moment."""
    return wait_until_done(CatchingUp(talk.api, path, asked_at), "Branches caught up", timeout)


@click.command()
@click.option("--commit", metavar="ID", help="Everything that this commit names.")
@click.option("--branch", metavar="NAME", help="Everything that this branch's head at the mirror names.")
@click.option("--all", "everything", is_flag=True, help="Everything that the mirror's heads name.")
@click.option("--depth", metavar="DEPTH", help="How deeply objects are validated. Default: the mirror's own depth.")
@may_wait
@of_mirror
def validate(talk: Talk, path: str, everything: bool, wait: bool, timeout: float | None, **options: str | None) -> None:
    """Validate everything again, whatever was validated before. With --wait it exits with 1 if it finds a problem.

    So it does if somebody stops the check: that proves nothing.
    """
    if [bool(options["commit"]), bool(options["branch"]), everything].count(True) != 1:
        raise click.UsageError("give one of --commit, --branch and --all")
    body = {name: value for name, value in (options | {"all": everything}).items() if value}
    job = talk.api.post(f"{path}/validate", body)
    if wait or timeout is not None:
        asked = f"{path}/validations/{job['id']}"
        job = wait_until_done(lambda: _look(talk.api.get(asked)), "Ranges checked", timeout)
    talk.tell(job, mirror_tables.check)
    if job["problems"] or job["state"] == "stopped":
        click.get_current_context().exit(No.exit_code)


def _look(job: dict[str, Any]) -> Look:
    remaining = job["metaranges_left"]
    text = job["error"] or (
        f"{remaining:,} metaranges are still to be read" if remaining else job["state"].capitalize()
    )
    return Look(job["ended_at"] is not None, job["ranges_done"], max(job["ranges"], 1), text, job)


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@of_mirror
def delete(talk: Talk, path: str, yes: bool) -> None:
    """Delete a mirror: its repository is deleted, its objects stay. You have to type the mirror's name."""
    mirror, tag = talk.api.get_with_tag(path)
    if not yes:
        _have_it_typed(mirror)
    talk.api.delete(path, tag)
    if not talk.as_json:
        click.echo(f"{mirror['id']} is deleted. Its objects under {mirror['storage_namespace']} stay.")


def _have_it_typed(mirror: dict[str, Any]) -> None:
    """Raises No unless the mirror's name is typed, and WrongUsage where nobody can."""
    name = mirror["id"]
    click.echo(
        f"The repository {name} in {mirror['region']} goes, with its branches and commit records there.", err=True
    )
    click.echo(f"Objects under {mirror['storage_namespace']} stay, and so does the source.", err=True)
    try:
        typed = click.prompt(f"Type {name} to delete it", err=True, default="", show_default=False)
    except click.Abort:
        click.echo(err=True)
        raise WrongUsage("nothing was deleted: the name was not typed. In scripts, use --yes") from None
    if typed != name:
        raise No(f"nothing was deleted: that is not '{name}'")
