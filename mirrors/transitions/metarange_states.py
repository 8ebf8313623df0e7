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


def note_metaranges(mirror: Mirror, metaranges: Mapping[str, Found]) -> list[Problem]:
    """Write down what a look at the destination gave of each; gives the problems.

    Inside of a transaction that holds the mirror. One that had been there is damage; what is known to be gone at both
    sides stays so until it is looked for again.
    """
    looked = {metarange_id: f for metarange_id, f in metaranges.items() if metarange_id}
    before = dict(mirror.metaranges.filter(metarange_id__in=list(looked)).values_list("metarange_id", "state"))
    known = mirror.blockers.filter(kind=Blocker.Kind.METARANGE, holder_id__in=list(looked))
    lost = set(known.filter(gone_at_source=True).values_list("holder_id", flat=True))
    problems = [
        p for metarange_id, f in looked.items() if (p := problem_of(metarange_id, f, damage=metarange_id in before))
    ]
    note_problems(mirror, [replace(p, gone_at_source=p.holder_id in lost) for p in problems])
    bad = {problem.holder_id for problem in problems}
    _store(
        mirror,
        {metarange_id: f for metarange_id, f in looked.items() if metarange_id not in bad or metarange_id in before},
        bad,
        lost,
    )
    doubt_metaranges(mirror, {metarange_id for metarange_id in bad if before.get(metarange_id) == State.COMPLETE})
    _settle(mirror, looked.keys() - bad)
    return problems


def _store(mirror: Mirror, metaranges: Mapping[str, Found], bad: Collection[str], lost: Collection[str]) -> None:
    now = clock.now()
    rows = [
        MetarangeCoverage(
            mirror=mirror,
            metarange_id=metarange_id,
            state=(State.GONE if metarange_id in lost else State.WAITING) if metarange_id in bad else State.COMPLETE,
            ranges=len(f.ranges),
            checked_at=now,
            verify_at=None if metarange_id in bad else next_check(metarange_id, now),
        )
        for metarange_id, f in metaranges.items()
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
