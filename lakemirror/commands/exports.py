"""Commands about exports: set, get, run, repair, status and their like."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import click

from lakemirror.commands.context import Talk, talks
from lakemirror.commands.labels import labelled
from lakemirror.commands.pausing import pause_terms
from lakemirror.errors import No
from lakemirror.output import export_tables
from lakemirror.output.formatting import short, size
from lakemirror.settings import EXPORTS_API
from lakemirror.wait import Look, may_wait, wait_until_done

_talks = functools.partial(talks, base=EXPORTS_API)
_BRANCH = re.compile(r"lakefs://([^/@]+)[/@](.+)")
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
MANIFESTS = ("always", "daily", "never")
SUCCESS, FAILED = "exported-successfully", export_tables.FAILED


def branch_path(text: str) -> str:
    """The path below the API of `lakefs://REPO/BRANCH` or `lakefs://REPO@BRANCH`, with `:NAME` behind it for the export
    of that name."""
    match = _BRANCH.fullmatch(text)
    if not match:
        raise click.BadParameter(f"'{text}' is not a branch: use lakefs://REPOSITORY/BRANCH, or …/BRANCH:NAME")
    return f"/repositories/{quote(match[1], safe='')}/branches/{quote(match[2], safe='')}"


def of_branch(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command its Talk and the address of the branch whose export it is about."""

    @click.argument("branch", type=branch_path)
    @click.option("--region", default="", metavar="REGION", help="Region of the repository, if not LakeMirror's own.")
    @_talks
    @functools.wraps(command)
    def talking(talk: Talk, *, branch: str, region: str, **more: Any) -> None:
        talk.api.always(region=region)
        command(talk, branch, **more)

    return talking


@click.command("list")
@_talks
def list_exports(talk: Talk) -> None:
    """List exports, those that need attention first."""
    talk.tell(talk.api.pages("/exports"), export_tables.export_list)


def _yes(text: str) -> bool:
    """What stands behind `--continuous`, which may stand alone."""
    if text.lower() not in (*_TRUE, *_FALSE):
        raise click.BadParameter(f"'{text}' is neither true nor false")
    return text.lower() in _TRUE


@click.command("set")
@click.option("--path", required=True, metavar="S3-URI", help="Destination of the files.")
@click.option(
    "--continuous",
    required=True,
    is_flag=False,
    flag_value="true",
    type=_yes,
    metavar="[=false]",
    help="Export after every commit; =false: once, now.",
)
@click.option("--status-path", default="", metavar="S3-URI", help="Where a status file is written after each export.")
@click.option(
    "--prefix-regex", multiple=True, metavar="RE2", help="Directories that get a _lakefs_success; may be repeated."
)
@click.option(
    "--manifest",
    type=click.Choice(MANIFESTS),
    help="When to write a list of all files. Default: unchanged; daily for a new export.",
)
@click.option(
    "--actions/--no-actions",
    default=None,
    help="Export _lakefs_actions/ too. Default: unchanged; no for a new export.",
)
@click.option("--objects-per-second", type=int, metavar="N", help="Rate limit.")
@click.option("--bytes-per-second", type=int, metavar="N", help="Rate limit.")
@may_wait
@of_branch
def set_export(
    talk: Talk,
    branch: str,
    path: str,
    continuous: bool,
    status_path: str,
    prefix_regex: Sequence[str],
    manifest: str | None,
    actions: bool | None,
    objects_per_second: int | None,
    bytes_per_second: int | None,
    wait: bool,
    timeout: float | None,
) -> None:
    """Create or change the export of a branch, and export its current head. An option that is not given gets its
    default; only --manifest and --actions stay unchanged."""
    body: dict[str, Any] = {
        "exportPath": path,
        "exportStatusPath": status_path,
        "lastKeysInPrefixRegexp": list(prefix_regex),
        "isContinuous": continuous,
        "objectsPerSecond": objects_per_second,
        "bytesPerSecond": bytes_per_second,
    }
    kept = {"manifest": manifest, "includeActions": actions}
    body |= {name: value for name, value in kept.items() if value is not None}
    talk.api.put(f"{branch}/continuous-export", body)
    if wait or timeout is not None:
        tell_when_done(talk, branch, 0, timeout)
    elif not talk.as_json:
        click.echo("The export is configured and starts now.")


@click.command()
@of_branch
def get(talk: Talk, branch: str) -> None:
    """Show the settings of an export."""
    talk.tell(talk.api.get(f"{branch}/continuous-export"), export_tables.configuration)


@click.command()
@of_branch
def status(talk: Talk, branch: str) -> None:
    """Show the state of an export. Exits with 1 if it failed, drifted, or could not be verified."""
    standing = talk.api.get(f"{branch}/export-status")
    talk.tell(standing, export_tables.standing)
    if export_tables.is_in_trouble(standing):
        click.get_current_context().exit(No.exit_code)


@click.command()
@may_wait
@of_branch
def run(talk: Talk, branch: str, wait: bool, timeout: float | None) -> None:
    """Export the branch's current head. With --wait it exits with 1 if the export fails."""
    number = talk.api.post(f"{branch}/export-hook")
    if wait or timeout is not None:
        click.echo(f"Export-ID:{number}", err=True)
        tell_when_done(talk, branch, int(number), timeout)
    else:
        talk.tell(number, "Export-ID:{}".format)


@click.command()
@may_wait
@of_branch
def repair(talk: Talk, branch: str, wait: bool, timeout: float | None) -> None:
    """Repair: restart an export that failed, once its cause is fixed."""
    last = talk.api.get(f"{branch}/export-status")["run"]
    talk.api.post(f"{branch}/repair-export")
    if wait or timeout is not None:
        tell_when_done(talk, branch, int(last["id"]) + 1 if last else 1, timeout)
    elif not talk.as_json:
        click.echo("The export is resumed.")


@click.command()
@pause_terms
@of_branch
def pause(talk: Talk, branch: str, terms: dict[str, Any]) -> None:
    """Pause after the files that are being copied now.

    It stays paused until it is resumed; an alert tells if that is later than you say here.
    """
    talk.tell(talk.api.post(f"{branch}/export-pause", terms), export_tables.standing)


@click.command()
@of_branch
def resume(talk: Talk, branch: str) -> None:
    """Resume a paused export."""
    talk.tell(talk.api.post(f"{branch}/export-resume"), export_tables.standing)


@click.command()
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Set this label; may be repeated.")
@click.option("--remove-label", "removed", multiple=True, metavar="KEY", help="Remove this label; may be repeated.")
@of_branch
def label(talk: Talk, branch: str, labels: Sequence[str], removed: Sequence[str]) -> None:
    """Set and remove labels of an export. Nothing is exported for it."""
    if not labels and not removed:
        raise click.UsageError("give at least one label to set or remove")
    now = talk.api.get(f"{branch}/export-status")["labels"]
    body = {"labels": labelled(now, labels, removed)}
    talk.tell(talk.api.post(f"{branch}/export-labels", body), export_tables.standing)


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@of_branch
def delete(talk: Talk, branch: str, yes: bool) -> None:
    """Delete an export. The exported files stay."""
    place = talk.api.get(f"{branch}/continuous-export")["exportPath"]
    if not yes and not click.confirm(f"Export to {place} no more?", err=True):
        raise No("nothing was deleted")
    talk.api.delete(f"{branch}/continuous-export")
    if not talk.as_json:
        click.echo(f"The export is deleted. The files at {place} stay.")


def tell_when_done(talk: Talk, branch: str, least: int, timeout: float | None) -> None:
    """Wait for the end of a run of this number or a later one. Raises No if that fails."""
    standing = wait_until_done(lambda: _look(talk.api.get(f"{branch}/export-status"), least), "Files exported", timeout)
    talk.tell(standing, export_tables.standing)


def _look(standing: dict[str, Any], least: int) -> Look:
    run = standing["run"]
    if standing["status"] == FAILED and (run is None or int(run["id"]) >= least):
        raise No(f"the export failed: {standing['error_message']}")
    if run is None or int(run["id"]) < least:
        return Look(False, 0, 1, standing["look_error"] or "It is about to start", standing)
    through = run["copied"] + run["skipped"] + run["deleted"]
    whole = run["to_copy"] + run["to_delete"]
    text = f"{short(run['ref'])}: {run['phase']}, {size(run['copied_bytes'])} of {size(run['to_copy_bytes'])}"
    arrived = standing["status"] == SUCCESS and standing["up_to_date"] is not False
    done = run["ended_at"] is not None and (arrived or int(run["id"]) == least)
    return Look(done, through, max(whole, 1), text, standing)
