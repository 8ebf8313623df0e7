"""The duties of a rule: one that compares its places, and one for each link that copies.

Their subjects are below zero, as those of exports: a version that knows no rules takes every subject for a mirror's.
"""

from __future__ import annotations

from jobs import duties
from replication.models import Link, Rule

SCAN, LINK = "replication-scan", "replication-link"
"""The kinds: of a rule, in the source's region; of a link, in the target's."""


def subject_of(row: Rule | Link) -> int:
    """The subject of its duty."""
    return -int(row.pk)


def ensure(rule: Rule) -> None:
    """All duties of a rule exist; new ones are due at once."""
    duties.ensure(SCAN, subject_of(rule), rule.region)
    for link in rule.links.all():
        duties.ensure(LINK, subject_of(link), link.region)


def wake(rule: Rule) -> None:
    """Have its places compared soon. Inside of a transaction: once that is through."""
    duties.wake(SCAN, subject_of(rule))


def wake_link(link: Link) -> None:
    """Have a link look soon at what is due."""
    duties.wake(LINK, subject_of(link))
