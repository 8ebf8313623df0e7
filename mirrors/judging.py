"""By which settings is a mirror judged, and what of an earlier judgement still counts when they change?

`Coverage.depth` says what a check has proven of a range: that, and all that is less deep. Where the settings ask for
more than a check has looked at, its depth is taken down. What the mirror's branches show stays as it was judged, and is
checked again in its turn; every other commit is judged anew, and promoted only after that.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from core.errors import Fenced
from core.presence import Depth, Imported
from core.promotion import UNKNOWN
from mirrors import duties
from mirrors.duties import Lease
from mirrors.models import Coverage, Mirror, MirrorCommit

WINDOW = 2000
NOTHING = ""
"""The depth of a check that proves nothing any more."""
_SETTINGS = ("depth", "content_sample", "imported")


def hold(mirror: Mirror, lease: Lease) -> None:
    """Inside of a transaction that writes down a judgement: the lease is ours, and it was made by today's settings.

    Raises Fenced when somebody has changed them since `mirror` was read: then it is judged again.
    """
    lease.hold()
    # Without a key's lock: who inserts rows that name the mirror need not wait, nor be waited for.
    now = Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).values_list(*_SETTINGS).first()
    if now != tuple(getattr(mirror, name) for name in _SETTINGS):
        raise Fenced(f"the settings of {mirror.name} were changed meanwhile")


def judge_anew(old: Mirror, new: Mirror) -> None:
    """What follows from other settings, in the transaction that changes them."""
    asks_more = _take_down(old, new)
    if asks_more:
        _doubt_unshown(new)
    new.blockers.update(look_at=datetime.now(UTC))  # it may pass now
    duties.wake("validate", new.pk)


def _take_down(old: Mirror, new: Mirror) -> bool:
    """Let no coverage say more than it proves by the new settings; true if some of it doesn't count any more."""
    deeper = new.depth in Depth(old.depth).deeper
    reads_more = new.content_sample > old.content_sample
    bars_more = (old.imported, new.imported) == (Imported.ALLOW, Imported.BLOCK)
    # What still waits is completed by looks of the new depth.
    waiting = new.coverage.exclude(state=Coverage.State.COMPLETE)
    waiting.filter(depth__in=Depth(new.depth).deeper).update(depth=new.depth)
    if reads_more:
        new.coverage.filter(depth=Depth.CONTENT).update(depth=Depth.ETAG)
    if bars_more:
        new.coverage.update(depth=NOTHING)
    return deeper or bars_more or (reads_more and new.depth == Depth.CONTENT)


def _doubt_unshown(mirror: Mirror) -> None:
    """All commits that no branch of the mirror leads to are to be judged, and put in order, once more."""
    keys = sorted(_unshown(mirror))
    for start in range(0, len(keys), 500):
        rows = mirror.commits.filter(pk__in=keys[start : start + 500])
        rows.update(data=MirrorCommit.Data.UNKNOWN, history=False, validated_at=None)


def _unshown(mirror: Mirror) -> Iterator[int]:
    """Keys of judged commits that are in no branch's history there. From the newest on: children have larger keys."""
    heads = mirror.branches.filter(stray=False).exclude(position=UNKNOWN).values_list("head", flat=True)
    shown = set(heads)
    names = ("pk", "commit_id", "commit__sha", "commit__parents", "data", "history")
    rows = mirror.commits.order_by("-commit_id").values_list(*names)
    window = list(rows[:WINDOW])
    while window:
        for pk, _, sha, parents, data, history in window:
            if sha in shown:
                shown.remove(sha)
                shown.update(parents)
            elif history or data != MirrorCommit.Data.UNKNOWN:
                yield pk
        window = list(rows.filter(commit_id__lt=window[-1][1])[:WINDOW])
