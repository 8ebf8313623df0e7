"""The command that changes how a mirror's objects are validated and copied, and which merges wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from lakemirror.commands.context import Talk, of_mirror
from lakemirror.commands.labels import labelled
from lakemirror.output import mirror_tables
from lakemirror.output.check_tables import said
from lakemirror.output.formatting import clean


@click.command()
@click.option(
    "--validation-depth",
    metavar="DEPTH",
    help="How deeply objects are validated: presence, size, etag or content. With a deeper one, no branch moves until "
    "everything has been validated again that deep.",
)
@click.option(
    "--object-replication",
    metavar="native|managed",
    help="Who copies objects: a rule of the stores, or LakeMirror.",
)
@click.option(
    "--pause-copying/--resume-copying",
    "copying_paused",
    default=None,
    help="Stop or go on copying; checks and branches go on either way.",
)
@click.option("--workers", type=int, metavar="N", help="How many objects LakeMirror copies at once.")
@click.option("--bytes-per-second", type=int, metavar="N", help="The most that LakeMirror copies; 0: no limit.")
@click.option("--objects-per-second", type=int, metavar="N", help="The most objects that it copies; 0: no limit.")
@click.option(
    "--branch-priority",
    multiple=True,
    metavar="GLOB",
    help="Branches to copy first, most wanted first; '' for none.",
)
@click.option(
    "--follow-gc/--no-follow-gc",
    "follow_gc",
    default=None,
    help="Delete here, a week later, what the source's garbage collection deleted there.",
)
@click.option("--delete-percent", type=int, metavar="N", help="Ask before more than N % of the objects are deleted.")
@click.option("--delete-most", type=int, metavar="N", help="Ask before more than N objects are deleted.")
@click.option(
    "--hold",
    multiple=True,
    metavar="GLOB[:COPIES[:SECONDS[:refuse|allow]]]",
    help="Hold merges into these branches until so many regions have them. In place of all policies.",
)
@click.option("--no-hold", is_flag=True, help="Hold no merges any more.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Set this label; may be repeated.")
@click.option("--remove-label", "removed", multiple=True, metavar="KEY", help="Remove this label; may be repeated.")
@of_mirror
def edit(
    talk: Talk,
    path: str,
    validation_depth: str | None,
    object_replication: str | None,
    copying_paused: bool | None,
    workers: int | None,
    bytes_per_second: int | None,
    objects_per_second: int | None,
    branch_priority: tuple[str, ...],
    follow_gc: bool | None,
    delete_percent: int | None,
    delete_most: int | None,
    hold: tuple[str, ...],
    no_hold: bool,
    labels: Sequence[str],
    removed: Sequence[str],
) -> None:
    """Change a mirror's labels, how its objects are validated and copied, which merges wait for it. The rest stays."""
    given: dict[str, Any] = {
        "validation_depth": validation_depth,
        "object_replication": object_replication,
        "copying_paused": copying_paused,
        "workers": workers,
        "follow_gc": follow_gc,
        "delete_percent": delete_percent,
        "delete_most": delete_most,
    }
    body = {name: value for name, value in given.items() if value is not None}
    limits = {"bytes_per_second": bytes_per_second, "objects_per_second": objects_per_second}
    body |= {name: value or None for name, value in limits.items() if value is not None}
    if branch_priority:
        body["branch_priority"] = [glob for glob in branch_priority if glob]
    if hold or no_hold:
        body["hold"] = _policies(hold, none=no_hold)
    tag = ""
    if labels or removed:
        mirror, tag = talk.api.get_with_tag(path)
        body["labels"] = labelled(mirror["labels"], labels, removed)
    if not body:
        raise click.UsageError("give at least one setting to change")
    _tell(talk, talk.api.patch(path, body, tag))


def _tell(talk: Talk, changed: Mapping[str, Any]) -> None:
    """The mirror as it is then, and what its settings ask for that is not in order."""
    talk.tell(changed, mirror_tables.mirror_standing)
    for check in changed.get("checks", ()):  # a server of the version before makes none
        if check["state"] != "ok":
            click.echo(f"lakemirror: {clean(said(check))}", err=True)


def _policies(hold: Sequence[str], *, none: bool) -> list[dict[str, Any]]:
    """The policies as the API takes them; `none`: that there are to be none. Raises UsageError."""
    if hold and none:
        raise click.UsageError("--hold and --no-hold contradict each other")
    return [_policy(one) for one in hold]


def _policy(given: str) -> dict[str, Any]:
    """A policy as the API takes it. Raises UsageError."""
    branches, *rest = given.split(":")
    if len(rest) > 3 or not branches or not all(part.isdigit() for part in rest[:2]):
        raise click.UsageError(f"'{given}' is no policy: write GLOB, GLOB:COPIES, or GLOB:COPIES:SECONDS:refuse")
    names = ("copies", "hold_seconds")
    policy: dict[str, Any] = {
        "branches": branches,
        **{name: int(part) for name, part in zip(names, rest, strict=False)},
    }
    return policy | ({"when_late": rest[2]} if len(rest) == 3 else {})
