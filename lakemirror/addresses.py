"""Mirrors are named by their id alone; the API's addresses need the repository too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from lakemirror.api import Api
from lakemirror.errors import NotThere

ALL = "/mirrors"


def path_of(api: Api, mirror: str, repository: str | None) -> str:
    """The address of a mirror, found by its id unless the repository is given. Raises NotThere."""
    return mirror_path(repository or _find(api, mirror)["source_repository"], mirror)


@contextmanager
def explained(api: Api) -> Iterator[None]:
    """Says what it means when there is no list of all mirrors."""
    try:
        yield
    except NotThere:
        text = f"{api.url} has no list of all mirrors: if that is the url, it is an older LakeMirror"
        raise NotThere(f"{text}, which needs --repository") from None


def mirrors_path(repository: str) -> str:
    """The address of a repository's mirrors."""
    return f"/repositories/{quote(repository, safe='')}/mirrors"


def mirror_path(repository: str, mirror: str) -> str:
    """The address of one mirror."""
    return f"{mirrors_path(repository)}/{quote(mirror, safe='')}"


def _find(api: Api, mirror: str) -> dict[str, Any]:
    """Pages of mirrors by name, from just before this one: it mostly stands on the first."""
    after = mirror[:-1]
    while True:
        with explained(api):
            page = api.get(ALL, after=after)
        for row in page["results"]:
            if row["id"] == mirror:
                return dict(row)
        if not page["pagination"]["has_more"]:
            raise NotThere(f"there is no mirror '{mirror}': `lakemirror mirror list` lists them")
        after = page["pagination"]["next_offset"]
