"""Commands about single objects: where they can be read."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import click

from lakemirror.commands.context import Talk, talks
from lakemirror.output import object_tables


@click.command()
@click.argument("repository")
@click.argument("ref")
@click.argument("path")
@click.option("--prefer", metavar="REGION", help="The region to take if it has the object.")
@click.option("--seconds", type=click.IntRange(60, 3600), default=900, show_default=True, help="How long it is good.")
@click.option("--source-region", metavar="REGION", help="Region of the repository, if not LakeMirror's own.")
@click.option("--address-only", is_flag=True, help="Print the address and nothing else, for curl.")
@talks
def locate(talk: Talk, repository: str, ref: str, path: str, address_only: bool, **asked: str | int | None) -> None:
    """Print an address by which an object can be read now, in a region that has it.

    REF is a branch, a tag or a commit of REPOSITORY. Whoever has the address may read the object until it expires.
    """
    what = urlencode({"ref": ref, "path": path})
    answer = talk.api.get(f"/repositories/{quote(repository, safe='')}/objects/locate?{what}", **asked)
    if address_only and not talk.as_json:
        click.echo(answer["url"])
    else:
        talk.tell(answer, object_tables.located)
