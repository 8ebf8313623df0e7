"""What every command of a mirror has in common: whom it asks, and whether people or programs read the answer."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import click
from rich.console import Console, RenderableType

from lakemirror.addresses import path_of
from lakemirror.api import Api
from lakemirror.settings import API, read_settings

UNBOUNDED = 10_000
LIMIT = click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Maximum number of rows.")


@dataclass(frozen=True, slots=True)
class Talk:
    """One command's exchange: questions to the API, the answer to stdout."""

    api: Api
    as_json: bool

    def tell(self, answer: Any, as_people_read_it: Callable[[Any], RenderableType]) -> None:
        """The API's own answer for programs, else as people read it."""
        if self.as_json:
            click.echo(json.dumps(answer, indent=2))
        else:
            click.echo(_drawn(as_people_read_it(answer)))


def message(answer: Any) -> str:
    """What is done now, in the API's words."""
    return str(answer["message"])


def _drawn(shown: RenderableType) -> str:
    """As wide as the terminal; a file or a pipe gets whole lines. Nothing is filled up with spaces."""
    console = Console(width=None if sys.stdout.isatty() else UNBOUNDED, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def talks(command: Callable[..., None], base: str = API) -> Callable[..., None]:
    """Gives a command its Talk with a part of the API, and the options that belong to it."""

    @click.option("--url", default="", help="Address of LakeMirror. Default: LAKEMIRROR_URL or the file.")
    @click.option("--json", "as_json", is_flag=True, help="Print the API's answer, for programs.")
    @functools.wraps(command)
    def talking(*, url: str, as_json: bool, **more: Any) -> None:
        command(Talk(Api(read_settings(url), base), as_json), **more)

    return talking


def mirror_at(path: str) -> str:
    """The name of the mirror at an address as `of_mirror` gives it."""
    return unquote(path.rpartition("/")[2])


def of_mirror(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command its Talk and the address of the mirror that it is about."""

    @click.argument("mirror")
    @click.option("--repository", metavar="NAME", help="The mirror's source. Default: found by the mirror's name.")
    @talks
    @functools.wraps(command)
    def talking(talk: Talk, *, mirror: str, repository: str | None, **more: Any) -> None:
        command(talk, path_of(talk.api, mirror, repository), **more)

    return talking
