"""Commands that print what LakeMirror's own user needs, as policies, and check what settings need at both sides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import click

from lakemirror.commands.context import Talk, of_mirror, talks
from lakemirror.errors import No
from lakemirror.output.check_tables import check_list

OF = click.option("--of", "of", type=click.Choice(["lakefs", "store"]), help="Print only the policy for this one.")


@click.command("policy")
@click.option("--side", type=click.Choice(["source", "destination"]), help="Only what is needed on this side.")
@OF
@click.option("--source-region", metavar="REGION", help="For a mirror to be created: region of its source.")
@click.option("--region", metavar="REGION", help="For a mirror to be created: its region.")
@click.option("--storage-namespace", metavar="S3-URI", help="For a mirror to be created: its storage namespace.")
@click.option("--tags", is_flag=True, help="For a mirror to be created: mirror tags too.")
@click.option(
    "--object-replication", metavar="native|managed", help="For a mirror to be created: who copies its objects."
)
@click.option("--follow-gc", is_flag=True, help="With what it needs to follow its source's garbage collection.")
@of_mirror
def of_a_mirror(
    talk: Talk, path: str, *, side: str | None, of: str | None, tags: bool, follow_gc: bool, **plan: str | None
) -> None:
    """The policies that LakeMirror's user needs for a mirror, as JSON.

    Also for a mirror that does not exist yet: give --repository, --region and --storage-namespace.

    \b
    lakemirror mirror policy lake-eu --side source --of lakefs |
      lakectl auth policies create --id Replication --statement-document -
    """
    if of and not side:
        raise click.UsageError("--of needs --side")
    planned = {"tags": "true" if tags else None, **plan}
    if any(planned.values()) and not (plan["region"] or plan["storage_namespace"]):
        given = next(f"--{name.replace('_', '-')}" for name, value in planned.items() if value)
        raise click.UsageError(f"{given} is for a mirror to be created: give its --region too")
    answer = talk.api.get(f"{path}/policy", follow_gc="true" if follow_gc else None, **planned)
    _tell(answer[side] if side else answer, of)


@click.command()
@of_mirror
def preflight(talk: Talk, path: str) -> None:
    """Check what a mirror's settings ask for: held merges, following the garbage collection."""
    answer = talk.api.get(f"{path}/preflight")
    talk.tell(answer, check_list)
    if any(check["state"] != "ok" for check in answer["checks"]):
        raise No("not all of it is in order")


@click.command("policy")
@click.argument("region")
@OF
@talks
def of_an_installation(talk: Talk, region: str, of: str | None) -> None:
    """The policies that LakeMirror's user needs in a region for everything it does there, as JSON."""
    _tell(talk.api.get(f"/installations/{quote(region, safe='')}/policy"), of)


def _tell(answer: Mapping[str, Any], of: str | None) -> None:
    """JSON in any case: it is for lakeFS, or for AWS."""
    told = answer[of] if of else answer
    if told is None and of == "lakefs":
        raise No("this installation has no lakeFS")
    if told is None:
        raise No("no place in that store is known yet: create a mirror, or describe the one to be created")
    if left_out := answer.get("left_out"):
        click.echo(f"lakemirror: {left_out} left out because you may not see them", err=True)
    click.echo(json.dumps(told, indent=2))
