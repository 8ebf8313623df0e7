"""The duties of rules: one looks through the source, one for each link copies, one for each pass looks through all.

Their subjects are below zero: a version before this one takes every subject for a mirror's, and would delete the duty
of a rule together with the mirror of the same key.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobs import duties
from jobs.models import Duty
from replication.models import Pass, Rule

SCAN = "replication-scan"
LINK = "replication-link"
PASS = "replication-pass"


def ensure(rule: Rule) -> None:
    """The duties of a rule and of all its links exist. Those of a link belong to its source's region, too: whoever
    serves that does all of a rule."""
    duties.ensure(SCAN, -rule.pk, rule.region)
    for pk in rule.links.values_list("pk", flat=True):
        duties.ensure(LINK, -pk, rule.region)


def wake_scan(rule_id: int) -> None:
    """A rule's look is due now, once the transaction is through."""
    duties.wake(SCAN, -rule_id)


def wake_links(link_ids: Iterable[int]) -> None:
    """So is the copying of these links."""
    for pk in link_ids:
        duties.wake(LINK, -pk)


def end_link(link_id: int) -> None:
    """The duty of a link that is gone goes, too."""
    Duty.objects.filter(kind=LINK, subject=-link_id).delete()


def ensure_pass(made: Pass) -> None:
    """The duty of a pass exists."""
    duties.ensure(PASS, -made.pk, made.region)


def wake_pass(pass_id: int) -> None:
    """It is due now, once the transaction is through."""
    duties.wake(PASS, -pass_id)


def end_pass(pass_id: int) -> None:
    """A pass has ended, and so does its duty."""
    Duty.objects.filter(kind=PASS, subject=-pass_id).delete()
