"""What a pass looks at: its rule and links, or those that somebody only thinks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replication.models import Link, Pass, Rule


def rule_of(made: Pass) -> tuple[Rule, list[Link]]:
    """The rule, and the links that the pass is of, as far as they are still there. Of a wish they are in no table:
    their keys are below zero."""
    if made.rule is not None:
        if made.link is not None:
            return made.rule, [made.link]
        links = made.rule.links.filter(removing=False).order_by("number")
        # One of the version before has written down no targets as it began.
        return made.rule, [link for link in links if not made.actions or str(link.number) in made.actions]
    return imagined(made.wish, made.began_at)


def imagined(wish: Mapping[str, Any], now: Any) -> tuple[Rule, list[Link]]:
    """A rule that somebody thinks of, as if it were made now, with its links."""
    columns = {column.name for column in Rule._meta.fields} - {"id", "labels"}
    given = {name: value for name, value in wish.items() if name in columns}
    rule = Rule(**given | {"created_at": now, "changed_at": now})
    of_link = {column.name for column in Link._meta.fields} - {"id"}
    links = [
        Link(pk=-number, rule=rule, number=number, **{name: value for name, value in one.items() if name in of_link})
        for number, one in enumerate(wish["targets"], 1)
    ]
    return rule, links
