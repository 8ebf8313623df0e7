"""The command that changes how a mirror's objects are copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from lakemirror.commands.context import Talk, of_mirror
from lakemirror.commands.labels import labelled
from lakemirror.output import mirror_tables


@click.command()
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
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Set this label; may be repeated.")
@click.option("--remove-label", "removed", multiple=True, metavar="KEY", help="Remove this label; may be repeated.")
@of_mirror
def edit(
    talk: Talk,
    path: str,
    object_replication: str | None,
    copying_paused: bool | None,
    workers: int | None,
    bytes_per_second: int | None,
    objects_per_second: int | None,
    branch_priority: tuple[str, ...],
    labels: Sequence[str],
    removed: Sequence[str],
) -> None:
    """Change a mirror's labels, and how its objects are copied. What is not given stays as it is."""
    given: dict[str, Any] = {
        "object_replication": object_replication,
        "copying_paused": copying_paused,
        "workers": workers,
    }
    body = {name: value for name, value in given.items() if value is not None}
    limits = {"bytes_per_second": bytes_per_second, "objects_per_second": objects_per_second}
    body |= {name: value or None for name, value in limits.items() if value is not None}
    if branch_priority:
        body["branch_priority"] = [glob for glob in branch_priority if glob]
    tag = ""
    if labels or removed:
        mirror, tag = talk.api.get_with_tag(path)
        body["labels"] = labelled(mirror["labels"], labels, removed)
    if not body:
        raise click.UsageError("give at least one setting to change")
    talk.tell(talk.api.patch(path, body, tag), mirror_tables.mirror_standing)
