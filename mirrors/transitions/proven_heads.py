"""Whether the head of each branch is proven whole now: kept beside the branch, for lists of thousands of them.

Only the judge's words set it (mirrors/queries/proof_facts.py); whatever takes a proof back takes it down in the same
transaction.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef

from mirrors.models import Mirror, MirrorCommit


def unprove_heads(mirror: Mirror) -> None:
    """Heads whose commits are not known to be whole any more."""
    mirror.branches.filter(~_is_whole(mirror), proven=True).update(proven=False)


def prove_heads(mirror: Mirror) -> None:
    """Heads whose commits have been judged whole: under the mirror's lock, for what takes a proof back has it too."""
    unproven = mirror.branches.filter(_is_whole(mirror), proven=False, stray=False)
    if not unproven.exists():
        return
    with transaction.atomic():
        Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).first()
        unproven.update(proven=True)


def _is_whole(mirror: Mirror) -> Exists:
    whole = MirrorCommit.objects.promotable().filter(mirror=mirror, commit__repository=mirror.source_id)
    return Exists(whole.filter(commit__sha=OuterRef("head")))
