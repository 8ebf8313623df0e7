"""The companies of the fleet, and the mirrors of what they work on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from graveler.metarange import read_metarange
from graveler.ranges import read_range
from tests.company import Company
from tests.fakes import Lake
from tests.fleet import REGIONS
from tests.fleet.collection import Collection
from tests.fleet.merges import HELD, POLICY, Merges

if TYPE_CHECKING:
    from tests.fleet.world import World

KINDS: tuple[dict[str, Any], ...] = (
    {"object_replication": "native"},
    {"object_replication": "native", "hold": [POLICY]},
    {"object_replication": "managed", "follow_gc": True, "delete_percent": 100, "hold": [POLICY]},
    {"object_replication": "managed", "follow_gc": True, "delete_percent": 0},
)
"""The settings of four routes. Of two the stores copy objects, to the others the mirror brings them itself. Where no
percent may be deleted somebody has to approve each deletion."""
PATIENCE = 0.95
"""So seldom does a company do something before its mirror has any branch of it: that is superseded, or late."""

NAMES = 2
"""Times as many as there are branches at most: a name that was deleted is mostly gone for long enough to be noticed."""

PASSING, MOST_PASSING = "passing", 2
"""Branches that come and go, and how many there are at once."""


class Team(Company):
    """A company that mostly goes on with what its mirror has caught up with: so that most commits are promoted.
    `guarded`: branches that only held merges move."""

    mirror: Callable[[], dict[str, str]]
    guarded: frozenset[str] = frozenset()

    def found(self) -> None:
        """All the branches that it may have."""
        while len(self.heads) < self.most_branches:
            self.branch()
            self.note_heads()

    def _any(self) -> str:
        rested = self.rested()
        return self.random.choice(rested or sorted(self.heads.keys() - self.guarded) or sorted(self.heads))

    def branch(self) -> None:
        """From any branch, guarded ones too. Seldom of a name that is in use, or was a moment ago."""
        if len(self.heads) < self.most_branches:
            start = self.heads[self.random.choice(sorted(self.heads))]
            names = self.names if self.random.random() < 0.1 else sorted({*self.names} - self.heads.keys())
            self.heads[self.random.choice(names)] = start

    def commit(self) -> None:
        """Nothing while there are guarded branches alone."""
        if self.heads.keys() - self.guarded:
            super().commit()

    def commit_many(self) -> None:
        """The same."""
        if self.heads.keys() - self.guarded:
            super().commit_many()

    def rewind(self) -> None:
        """The same."""
        if self.heads.keys() - self.guarded:
            super().rewind()

    def merge(self) -> None:
        """One branch into another, never into a guarded one."""
        free = sorted(self.heads.keys() - self.guarded)
        if free and len(self.heads) > 1:
            into = self.random.choice(free)
            self.lake.merge(self.random.choice(sorted(self.heads.keys() - {into})), into)

    def come_and_go(self) -> None:
        """A branch for some work of its own; once the mirror has it, it is deleted: nothing leads to that work then."""
        passing = sorted(name for name in self.heads if name.startswith(PASSING))
        there = self.mirror()
        if rested := [name for name in passing if there.get(name) == self.heads[name]]:
            del self.heads[rested[0]]
        elif len(passing) < MOST_PASSING:
            free = sorted({f"{PASSING}{number}" for number in range(8)} - self.heads.keys())
            branch = self.random.choice(free)
            self.heads[branch] = self.heads[self.random.choice(sorted(self.heads))]
            for _ in range(self.random.randrange(1, 4)):
                path = f"{branch}/{self.random.randrange(4)}"
                self.lake.commit(branch, {path: self.random.randbytes(8)})
                self.note_heads()

    def rested(self) -> list[str]:
        """The branches that the mirror has."""
        there = self.mirror()
        return sorted(name for name, head in self.heads.items() if there.get(name) == head and name not in self.guarded)

    def is_patient(self) -> bool:
        """Whether to do nothing now."""
        return not self.rested() and self.random.random() < PATIENCE


class Route:
    """A source repository with its company, and the mirror of it in the other region."""

    def __init__(self, world: World, number: int, chance: random.Random, most_branches: int) -> None:
        self.source, self.region = REGIONS[number % 2], REGIONS[1 - number % 2]
        self.name, self.mirror = f"lake-{number}", f"lake-{number}-mirror"
        self.namespace, self.mirrored = f"s3://{self.source}/{self.name}", f"s3://{self.region}/{self.name}"
        self.settings = KINDS[number % len(KINDS)]
        self.object_replication = self.settings["object_replication"]
        self.follows, self.holds = "follow_gc" in self.settings, "hold" in self.settings
        self.store, self.there = world.stores[self.source], world.stores[self.region]
        self.lakefs = world.lakefs[self.region]
        lake = Lake(world.lakefs[self.source], self.store, self.name, self.namespace)
        self.company = Team(lake, chance, most_branches)
        self.company.names = [f"b{number}" for number in range(NAMES * most_branches)]
        self.company.mirror = lambda: self.heads
        self.company.guarded = frozenset({HELD} if self.holds else ())
        self.collection, self.merges = Collection(self, chance), Merges(self, chance)
        self._whole: set[str] = set()
        self._arrived: set[str] = set()
        self.lost: Callable[[], set[str]] = set

    @property
    def heads(self) -> dict[str, str]:
        """The mirror's."""
        found = self.lakefs.repositories.get(self.mirror)
        return found.branches if found else {}

    def behind(self) -> list[str]:
        """Branches of the mirror that are not where the source's are."""
        ours, theirs = self.heads, self.company.heads
        differ = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        return [f"{self.mirror}/{n}: {ours.get(n, '')[:8] or '-'} not {theirs.get(n, '')[:8] or '-'}" for n in differ]

    def pending(self) -> set[str]:
        """Merge commits that wait for an answer: no branch points to them."""
        return set(self.merges.open)

    def reached(self, heads: Iterable[str]) -> set[str]:
        """These commits, and all that they descend from."""
        commits, ahead, seen = self.company.lake.repository.commits, list(heads), set[str]()
        while ahead:
            one = ahead.pop()
            if one not in seen:
                seen.add(one)
                ahead.extend(commits[one].parents)
        return seen

    def torn(self, head: str) -> list[str]:
        """What is wrong with showing a commit."""
        return [f"{self.mirror} shows {head[:8]}, but {problem}" for problem in self.lacks(head)]

    def lacks(self, head: str) -> list[str]:
        """What is missing or wrong in a commit and its history. What once was whole stays so. History may lack objects
        that the source has collected: nobody has them."""
        ahead, seen = [head], {head}
        while ahead:
            commit = ahead.pop()
            if commit in self._whole:
                continue
            if problem := self._lacks(commit, excused=commit != head):
                return [f"of {commit[:8]} {problem}"]
            ahead += (parents := [sha for sha in self._parents(commit) if sha not in seen])
            seen.update(parents)
        return []

    def _parents(self, commit: str) -> tuple[str, ...]:
        return tuple(self.company.lake.repository.commits[commit].parents)

    def needed_by(self, commit: str) -> set[str]:
        """The keys of all that a commit and its history need: of history not what the source has collected."""
        below = set[str]().union(*map(self._keys, self.reached(self._parents(commit))))
        return self._keys(commit) | {key for key in below if not self.collection.has_taken(key)}

    def excuses(self, head: str, key: str) -> bool:
        """Whether somebody who reads a head may find something of its history missing: the source has collected it."""
        return key not in self._keys(head) and self.collection.has_taken(key)

    def original(self, key: str) -> bytes:
        """What the source has, or had before it was collected there."""
        uri = f"{self.namespace}/{key}"
        return self.store.objects[uri] if uri in self.store.objects else self.collection.taken[key]

    def forget(self, key: str) -> None:
        """It was deleted at the mirror, or lost there: what was found whole with it counts no more."""
        self._arrived.discard(key)
        self._whole -= self.collection.naming(key)

    def out_of_order(self, key: str, data: bytes) -> list[str]:
        """What a file of metadata names that is not at the mirror yet, where the mirror brings it itself."""
        if self.object_replication == "native" or not key.startswith("_lakefs/"):
            return []
        name, commits = key.removeprefix("_lakefs/"), self.company.lake.repository.commits.values()
        if any(commit.metarange_id == name for commit in commits):
            named = {f"_lakefs/{ref.id}" for ref in read_metarange(data, expected_id=name)}
        else:
            named = {entry.address for entry in read_range(data, expected_id=name)}
        absent = sorted(one for one in named - self.lost() if f"{self.mirrored}/{one}" not in self.there.objects)
        lacks = [one for one in absent if not self.collection.has_taken(one)]
        return [f"{self.mirror}: {key} was written before {one}" for one in lacks[:1]]

    def _keys(self, commit: str) -> set[str]:
        lake = self.company.lake
        files = lake.files_of(commit) if lake.repository.commits[commit].metarange_id else []
        return {f"_lakefs/{name}" for name in files} | {entry.address for entry in lake.trees[commit].values()}

    def _lacks(self, commit: str, *, excused: bool) -> str:
        if commit not in self.lakefs.repositories[self.mirror].commits:
            return "the record is not there"
        gone = False
        for key in sorted(self._keys(commit) - self._arrived - self.lost()):
            here = self.there.objects.get(f"{self.mirrored}/{key}")
            if here == self.original(key):
                self._arrived.add(key)
            elif excused and here is None and self.collection.has_taken(key):
                gone = True
            else:
                return f"{key} is not there, or damaged"
        if not gone:
            self._whole.add(commit)
        return ""
