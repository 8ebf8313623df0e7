"""Records on their way from a source's log to rows of `Commit`.

A log gives children first, and rows have to be stored parents first. So what is read is kept aside page by page, in
the order in which it came; once every parent is known it is placed, latest read first, a transaction per batch. A
process that dies in between leaves what it read and what it placed: the next look goes on from there. No step needs
more memory for a longer history, as long as its log gives children before parents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from django.db import models, transaction

from core.mirroring.commit_graph import ParentsFirst, descendants, in_circles, related, with_ancestors
from core.types import Commit as CommitRecord
from db.chunks import chunks
from jobs import duties
from jobs.lease import Lease
from mirrors.models import Commit, Mirror, MirrorCommit, MirrorDuty, Repository, UnplacedCommit

BATCH = 1000
FEW = 500

Line = tuple[int, str, list[str]]
"""Key, sha, parents."""


class Spool:
    """What was read of one source repository and is not placed yet."""

    def __init__(self, repository: Repository, lease: Lease) -> None:
        self.repository, self.lease = repository, lease
        self._last_earlier = repository.unplaced.order_by("-pk").values_list("pk", flat=True).first() or 0

    # Reading

    def add(self, records: Iterable[CommitRecord]) -> list[CommitRecord]:
        """Keep what is news; gives it."""
        page = {record.id: record for record in records}
        known = self.known(page)
        fresh = [record for sha, record in page.items() if sha not in known]
        rows = [UnplacedCommit(repository=self.repository, **UnplacedCommit.columns(record)) for record in fresh]
        if rows:
            with self.lease.transaction():
                UnplacedCommit.objects.bulk_create(rows, batch_size=FEW, ignore_conflicts=True)
        return fresh

    def known(self, shas: Collection[str]) -> set[str]:
        """Those of `shas` that are stored, or were read."""
        stored = self.stored(shas)
        return stored | self._stored_in(UnplacedCommit, set(shas) - stored)

    def stored(self, shas: Collection[str]) -> set[str]:
        """Those of `shas` that are rows of `Commit`."""
        return self._stored_in(Commit, shas)

    def _stored_in(self, model: type[Commit] | type[UnplacedCommit], shas: Collection[str]) -> set[str]:
        stored = model.objects.filter(repository=self.repository).values_list("sha", flat=True)
        return {sha for some in chunks(list(shas)) for sha in stored.filter(sha__in=some)}

    def frontier(self) -> set[str]:
        """Parents that were named and not read yet: where a reading that was broken off goes on."""
        missing = set[str]()
        for lines in self._latest_first():
            parents = {parent for _, _, parents in lines for parent in parents}
            missing |= parents - self.known(parents)
        return missing

    def below(self, heads: Collection[str]) -> dict[str, list[str]]:
        """What was read of the histories of some heads, with parents."""
        if not self._stored_in(UnplacedCommit, heads):
            return {}
        parents = self._parents()
        return {sha: parents[sha] for sha in with_ancestors(parents, heads)}

    def histories(self, heads: Collection[str]) -> Iterator[tuple[str, dict[str, list[str]]]]:
        """What was read of each of some heads' histories, with parents; nothing of most of them."""
        read_heads = self._stored_in(UnplacedCommit, heads)
        parents = self._parents() if read_heads else {}
        for head in sorted(heads):
            yield head, {sha: parents[sha] for sha in with_ancestors(parents, [head])} if head in read_heads else {}

    def lacking(self, read: Mapping[str, Collection[str]]) -> set[str]:
        """Parents of some that were read which were not read themselves, and are not stored."""
        parents = {parent for listed in read.values() for parent in listed} - read.keys()
        return parents - self.stored(parents)

    def _latest_first(self) -> Iterator[list[Line]]:
        rows = self.repository.unplaced.order_by("-pk").values_list("pk", "sha", "parents")
        lines = list(rows[:BATCH])
        while lines:
            yield lines
            if len(lines) < BATCH:
                return
            lines = list(rows.filter(pk__lt=lines[-1][0])[:BATCH])

    # Placing

    def place(self, at: datetime) -> int:
        """Store, parents first, all that was read and lacks no parent; gives how many. The rest stays."""
        order, placed = ParentsFirst(), 0
        for lines in self._latest_first():
            known = self.stored({parent for _, _, parents in lines for parent in parents})
            turn = order.feed([(sha, parents) for _, sha, parents in lines], known)
            for some in chunks(turn, BATCH):
                placed += self._store(some, at)
        return placed

    def _store(self, turn: Sequence[str], at: datetime) -> int:
        with transaction.atomic():
            Repository.objects.select_for_update(no_key=True).get(pk=self.repository.pk)
            self.lease.lock()
            stored = self.stored(turn)
            read = {row.sha: row.record() for row in self._read(turn)}
            rows = [self._commit(read[sha], at) for sha in turn if sha not in stored]
            Commit.objects.bulk_create(rows, batch_size=FEW)
            self._add_to_mirrors(rows)
            self._read(turn).delete()
        return len(rows)

    def _read(self, shas: Sequence[str]) -> models.QuerySet[UnplacedCommit]:
        return self.repository.unplaced.filter(sha__in=shas)

    def _commit(self, record: CommitRecord, at: datetime) -> Commit:
        return Commit(repository=self.repository, seen_at=at, **Commit.columns(record))

    def _add_to_mirrors(self, commits: Sequence[Commit]) -> None:
        """The repository's lock is held: a mirror that begins to follow everything now finds these commits itself."""
        for mirror in served_mirrors(self.repository).filter(follows_all=True) if commits else ():
            rows = [MirrorCommit(mirror=mirror, commit=commit) for commit in commits]
            MirrorCommit.objects.bulk_create(rows, batch_size=FEW, ignore_conflicts=True)
            duties.wake(MirrorDuty.COPY_RECORDS, mirror.pk)
            duties.wake(MirrorDuty.VALIDATE, mirror.pk)

    # What it has to do with what is stored

    def roots(self) -> set[str]:
        """Those of the commits that were read which have no parent."""
        return set(self.repository.unplaced.filter(parents=[]).values_list("sha", flat=True))

    def read_now(self, shas: Collection[str]) -> set[str]:
        """Those of `shas` that were read since this was made; what an earlier look left may be another repository's."""
        fresh = self.repository.unplaced.filter(pk__gt=self._last_earlier).values_list("sha", flat=True)
        return {sha for some in chunks(sorted(shas)) for sha in fresh.filter(sha__in=some)}

    def unrelated(self, known: Collection[str] = ()) -> tuple[set[str], set[str]]:
        """What was read, if it begins at a root, that shares no commit with what is stored or the `known` heads lead
        to: commits whose history was read to its end, and commits of which a log broke off."""
        if not self.roots():
            return set(), set()
        parents = self._parents()
        named = {parent for listed in parents.values() for parent in listed} - parents.keys()
        familiar = self.stored(named) | (named & set(known)) | with_ancestors(parents, known)
        strange = parents.keys() - related(parents, familiar) - familiar
        broken_off = strange & descendants(parents, named - familiar)
        return strange - broken_off, broken_off

    def above(self, roots: Collection[str]) -> set[str]:
        """What was read that descends from one of these."""
        return descendants(self._parents(), roots)

    def _parents(self) -> dict[str, list[str]]:
        return {sha: parents for lines in self._latest_first() for _, sha, parents in lines}

    # Forgetting

    def leave_out(self, shas: Collection[str]) -> None:
        """Forget these of what was read."""
        for some in chunks(sorted(shas)):
            with self.lease.transaction():
                self._read(some).delete()

    def keep_below(self, heads: Collection[str], wrong: Collection[str]) -> None:
        """Forget what is in none of these heads' histories; and what names a parent that is `wrong`, or lies in a
        circle."""
        parents = self._parents()
        naming = {sha for sha, its in parents.items() if not set(wrong).isdisjoint(its)}
        self.leave_out((parents.keys() - with_ancestors(parents, heads)) | naming | in_circles(parents))

    def clear(self) -> None:
        """Forget what was read and not placed."""
        if not self.repository.unplaced.exists():
            return
        with self.lease.transaction():
            self.repository.unplaced.all().delete()


def served_mirrors(repository: Repository) -> models.QuerySet[Mirror]:
    """The mirrors that follow a source repository."""
    return repository.mirrors.exclude(state__in=(Mirror.State.CREATING, Mirror.State.DELETING)).select_related("source")


def wake_promotion(repository: Repository) -> None:
    """Have them all promoted now."""
    for mirror in served_mirrors(repository):
        duties.wake(MirrorDuty.PROMOTE, mirror.pk)
