"""All that an installation's listings give, page after page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from core.ports import LakeFS
from core.types import Page

T = TypeVar("T")
PAGE = 1000
"""So many names on a page, where nobody says otherwise: lakeFS's own limit."""


def all_pages(list_page: Callable[[str], Page[T]], before_page: Callable[[], object] = lambda: None) -> Iterator[T]:
    """What is on the pages of a listing. `list_page` gives the page after a cursor: "" at first, then what the page
    before says. Raises what that call raises, or `before_page`, which is called before each."""
    after = ""
    while True:
        before_page()
        page = list_page(after)
        yield from page.results
        after = page.next_after
        if not after:
            return


def branch_heads(
    lakefs: LakeFS,
    repository: str,
    *,
    amount: int = PAGE,
    hidden: bool = True,
    before_page: Callable[[], object] = lambda: None,
) -> dict[str, str]:
    """Branch name to commit id; without hidden branches if so told. `before_page` is called before each page."""
    branches = all_pages(
        lambda after: lakefs.list_branches(repository, after=after, amount=amount, hidden=hidden), before_page
    )
    return {branch.name: branch.commit_id for branch in branches}


def tag_commits(
    lakefs: LakeFS, repository: str, *, amount: int = PAGE, before_page: Callable[[], object] = lambda: None
) -> dict[str, str]:
    """Tag name to commit id. `before_page` is called before each page."""
    tags = all_pages(lambda after: lakefs.list_tags(repository, after=after, amount=amount), before_page)
    return {tag.name: tag.commit_id for tag in tags}
