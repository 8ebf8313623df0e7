"""Moves are written down before they are made: judged and noted in one transaction, last thing before the call.

Whatever becomes of the worker then, whoever finds a ref where an intent was to bring it knows that it was us.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from django.db import transaction

from core.mirroring.judgement import Judgement, judge_circumstances, judge_deletion, judge_move
from core.mirroring.promotion import UNKNOWN, Why
from db import clock
from jobs.lease import Lease
from mirrors.models import Mirror, MirrorCommit, MoveIntent
from mirrors.queries.metaranges import ranges_named
from mirrors.queries.proof_facts import circumstances, proof_of, row_of
from mirrors.transitions.doubt import doubt_commits

KEPT = timedelta(days=1)
"""So long an intent is remembered after a later one: no call that was given up can be carried out after that."""


def intend(
    mirror: Mirror,
    lease: Lease,
    *,
    name: str,
    from_commit: str,
    to_commit: str,
    why: str,
    position: int = UNKNOWN,
    is_tag: bool = False,
    completes: bool = False,
) -> Judgement:
    """Judge a move by the facts as they are, and write its intent if it is allowed. "" as `to_commit` deletes.

    One that `completes` what was begun already does so in a pause too: readers would be without it until its end.
    A commit that its row still called whole, and that is not, is judged again by the validator.
    """
    row = row_of(mirror, to_commit) if to_commit else None
    named = ranges_named(mirror, row.commit.metarange_id) if row else ()
    with transaction.atomic():
        lease.lock()
        now, around = circumstances(mirror)
        around = replace(around, paused=around.paused and not completes)
        if why == Why.UNSELECTED and not _is_to_go(mirror, name):
            around = replace(around, unchanged=False)
        if now is None or not to_commit:
            judgement = judge_deletion(around, at_source=why == Why.GONE and _is_at_source(mirror, name, is_tag=is_tag))
        else:
            row = row_of(now, to_commit)
            judgement = judge_move(proof_of(now, row, named) if row else None, around)
        if now is not None and judgement.allowed:
            _write(now, name, from_commit, to_commit, why, position, is_tag=is_tag)
        elif now and row and row.data == MirrorCommit.Data.COMPLETE and judge_circumstances(around).allowed:
            doubt_commits(now, [(row.pk, row.commit_id)])
    return judgement


def _is_at_source(mirror: Mirror, name: str, *, is_tag: bool) -> bool:
    """Whether the source has a branch or tag, by the last look."""
    refs = mirror.source.tags if is_tag else mirror.source.branches
    return refs.filter(name=name, gone_at=None).exists()


def _is_to_go(mirror: Mirror, name: str) -> bool:
    """Whether an operator wants a branch deleted that is not selected: the last word on it may be another one, although
    the selection is the same as before."""
    rows = (mirror.branches, mirror.intents.filter(is_tag=False))
    return any(row.filter(name=name, delete_asked=True).exists() for row in rows)


def _write(
    mirror: Mirror, name: str, from_commit: str, to_commit: str, why: str, position: int, *, is_tag: bool
) -> None:
    MoveIntent.objects.update_or_create(
        mirror=mirror,
        name=name,
        is_tag=is_tag,
        to_commit=to_commit,
        defaults={
            "from_commit": from_commit,
            "position": position,
            "why": why,
            "facts_epoch": mirror.facts_epoch,
            "delete_asked": False,
            "at": clock.now(),
        },
    )


def intents_of(mirror: Mirror, *, tags: bool = False) -> Mapping[str, dict[str, MoveIntent]]:
    """Where we have meant to bring each ref lately: by its name, then by commit."""
    intents: dict[str, dict[str, MoveIntent]] = defaultdict(dict)
    for intent in mirror.intents.filter(is_tag=tags):
        intents[intent.name][intent.to_commit] = intent
    return intents


def forget_old_intents(mirror: Mirror) -> None:
    """Those that can't be carried out any more. While nobody looks at tags, what was made of theirs is not noted."""
    old = mirror.intents.filter(at__lt=clock.now() - KEPT)
    (old if mirror.tags else old.filter(is_tag=False)).delete()
