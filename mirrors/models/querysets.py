"""State changes and selections. A change of state is one conditional UPDATE; losing a race is normal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q

from core.access.mirror_rights import may_see_some, sees_all, to_see
from core.access.policies import evaluate_any
from core.mirroring.object_check import WAIVABLE, Depth


class Written(models.Value):
    """A word that stands in the query itself: by one that is given beside it SQLite doesn't know an index that is made
    for rows with it."""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        return f"'{self.value}'", []


ACCEPTED = Q(gone_at_source=True) | Q(waived=True, reason__in=sorted(WAIVABLE))
"""Things that history may lack: gone at both sides, or waived and not there. A head needs them all the same."""
UNCHECKED = Q(data__in=[Written("unknown"), Written("waiting")])
"""Commits at a mirror whose data is still to be checked."""


class MirrorQuerySet(models.QuerySet):
    def visible_to(self, user: Any) -> MirrorQuerySet:
        """The mirrors that `user` may see: all with fs:ListRepositories on `*`, else those whose own repository they
        may fs:ReadRepository. For who may not see all it asks for the names once."""
        from rbac.services import policies_of

        if not getattr(user, "is_authenticated", False) or not user.is_active:
            return self.none()
        policies, username = policies_of(user), user.username
        if sees_all(policies, username):
            return self.live()
        if not may_see_some(policies, username):
            return self.none()
        names = self.model.objects.live().order_by().values_list("name", flat=True)
        seen = [name for name in names if evaluate_any(policies, to_see(name), username)[1].allowed]
        return self.live().filter(name__in=seen)

    def live(self) -> MirrorQuerySet:
        """Without those that were deleted and only keep their name reserved."""
        return self.exclude(state=self.model.State.DELETING)

    def served(self, regions: list[str]) -> MirrorQuerySet:
        """Those whose destination this deployment looks after."""
        return self.filter(region__in=regions)

    def move(self, pk: int, old: str, new: str, **changes: Any) -> bool:
        """From state `old` to `new`; true if this call did it."""
        return self.filter(pk=pk, state=old).update(state=new, **changes) == 1


class MirrorCommitQuerySet(models.QuerySet):
    def to_copy(self) -> MirrorCommitQuerySet:
        """Records that the destination has not accepted yet, parents first."""
        return self.filter(record=self.model.Record.PENDING).select_related("commit").order_by("commit_id")

    def unjudged(self) -> MirrorCommitQuerySet:
        """Commits that nobody looked at yet, or that waited for something which has arrived; oldest first."""
        return self.filter(UNCHECKED, data=self.model.Data.UNKNOWN).select_related("commit").order_by("commit_id")

    def asked_for(self) -> MirrorCommitQuerySet:
        """Those that somebody wants first, since the last round."""
        return self.filter(urgency__gt=0, urgency=1)

    def urgent(self) -> MirrorCommitQuerySet:
        """Those that go before others. With both conditions, for by the first one SQLite knows the index."""
        return self.filter(urgency__gt=0, urgency=2)

    def settled(self) -> MirrorCommitQuerySet:
        """Those for which nothing is left to do: record accepted, data judged, history in order."""
        return self.filter(record=self.model.Record.ACCEPTED, history=True).exclude(
            data__in=[self.model.Data.UNKNOWN, self.model.Data.WAITING]
        )

    def promotable(self) -> MirrorCommitQuerySet:
        """Record accepted, own data complete with nothing gone, all of the history in order, and not waived."""
        return self.filter(record=self.model.Record.ACCEPTED, data=self.model.Data.COMPLETE, history=True, waiver=None)


class BlockerQuerySet(models.QuerySet):
    def held_by(self, holders: Iterable[str]) -> BlockerQuerySet:
        """Those that these commits, metaranges or ranges need. With every kind there is, for so its index begins:
        without, all that the mirror lacks would be gone through."""
        return self.filter(kind__in=self.model.Kind.values, holder_id__in=holders)

    def needed(self) -> BlockerQuerySet:
        """Without what is only remembered: no commit that the mirror needs waits for it."""
        return self.filter(unneeded=False)


class CoverageQuerySet(models.QuerySet):
    def proving(self, depth: str) -> CoverageQuerySet:
        """Checks that were as deep as `depth`, or deeper: the only ones that count at it. Not those of versions that
        did not note what was looked for, and asked stores that may have answered for others."""
        return self.filter(depth__in=[depth, *Depth(depth).deeper], looked__isnull=False)

    def unnoted(self) -> CoverageQuerySet:
        """Checks of such a version, which may have been made after the tables were brought to this one."""
        return self.filter(looked=None).exclude(depth="")

    def settled(self) -> CoverageQuerySet:
        """Ranges that need no further look."""
        return self.exclude(state=self.model.State.WAITING)

    def aged(self, now: datetime, after: timedelta) -> CoverageQuerySet:
        """Ranges that wait for nothing and whose check is old, the oldest first. Those from before there was a date go
        by their age."""
        due = Q(verify_at__lte=now) | Q(verify_at=None, checked_at__lte=now - after)
        return self.filter(due, state__in=[self.model.State.COMPLETE, self.model.State.GONE]).order_by(
            "verify_at", "pk"
        )

    def found_deeper(self) -> CoverageQuerySet:
        """Ranges that were found damaged by a look which the mirror's own may not equal."""
        return self.exclude(deeper=Written(""))

    def doubted(self) -> CoverageQuerySet:
        """Ranges that stand in question."""
        return self.filter(state=self.model.State.WAITING).exclude(verify_at=None)

    def to_read(self) -> CoverageQuerySet:
        """Those of which it is asked what they name."""
        return self.doubted().filter(doubt__in=["shared", "fresh"])

    def to_check_anew(self) -> CoverageQuerySet:
        """Those of which all is looked for anew: their file came back, or they lack more than was kept by name."""
        return self.doubted().exclude(doubt__in=["shared", "fresh"])


class ValidationQuerySet(models.QuerySet):
    def open(self) -> ValidationQuerySet:
        """Those that have not ended: in the order that they were asked for, those whose last try failed at the end."""
        return self.filter(ended_at=None).order_by(F("failed_at").asc(nulls_first=True), "pk")
