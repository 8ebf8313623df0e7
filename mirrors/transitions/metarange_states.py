"""What was found of metaranges at a destination is written down: rows, blockers, and what follows for commits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from db import clock
from mirrors.models import Blocker, MetarangeCoverage, Mirror
from mirrors.models.problem import Problem
from mirrors.queries.metaranges import Found, problem_of
from mirrors.transitions.blockers import note_problems
from mirrors.transitions.doubt import doubt_metaranges
from mirrors.transitions.range_states import next_check, reopen

State = MetarangeCoverage.State


def proven_metaranges(mirror: Mirror, ids: Collection[str]) -> set[str]:
    """Those that a row says to be there and right."""
    rows = mirror.metaranges.filter(state=State.COMPLETE, metarange_id__in=list(ids))
    return set(rows.values_list("metarange_id", flat=True))


def note_metaranges(mirror: Mirror, found: Mapping[str, Found]) -> list[Problem]:
    """Write down what a look at the destination gave of each; gives the problems.

    Inside of a transaction that holds the mirror. One that had been there is damage; what is known to be gone at both
    sides stays so until it is looked for again.
    """
    looked = {one: f for one, f in found.items() if one}
    before = dict(mirror.metaranges.filter(metarange_id__in=list(looked)).values_list("metarange_id", "state"))
    known = mirror.blockers.filter(kind=Blocker.Kind.METARANGE, holder_id__in=list(looked))
    gone = set(known.filter(gone_at_source=True).values_list("holder_id", flat=True))
    problems = [p for one, f in looked.items() if (p := problem_of(one, f, damage=one in before))]
    note_problems(mirror, [replace(p, gone_at_source=p.holder_id in gone) for p in problems])
    bad = {problem.holder_id for problem in problems}
    _store(mirror, {one: f for one, f in looked.items() if one not in bad or one in before}, bad, gone)
    doubt_metaranges(mirror, {one for one in bad if before.get(one) == State.COMPLETE})
    _settle(mirror, looked.keys() - bad)
    return problems


def _store(mirror: Mirror, found: Mapping[str, Found], bad: Collection[str], gone: Collection[str]) -> None:
    now = clock.now()
    rows = [
        MetarangeCoverage(
            mirror=mirror,
            metarange_id=one,
            state=(State.GONE if one in gone else State.WAITING) if one in bad else State.COMPLETE,
            ranges=len(f.ranges),
            checked_at=now,
            verify_at=None if one in bad else next_check(one, now),
        )
        for one, f in found.items()
    ]
    MetarangeCoverage.objects.bulk_create(
        rows,
        batch_size=400,
        update_conflicts=True,
        unique_fields=["mirror", "metarange_id"],
        update_fields=["state", "checked_at", "verify_at"],
    )


def _settle(mirror: Mirror, right: Collection[str]) -> None:
    """What is there and right stands in nobody's way."""
    known = mirror.blockers.filter(kind=Blocker.Kind.METARANGE, holder_id__in=list(right))
    back = set(known.values_list("holder_id", flat=True))
    known.delete()
    reopen(mirror, back)
