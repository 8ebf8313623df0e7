"""What people do to the source beyond tests/company.py: reverts, resets to any old commit, tags, collecting garbage."""

from __future__ import annotations

import random
from collections import defaultdict

from tests.company import Company
from tests.fakes import Lake


class Source(Company):
    """`tagged`: the commits that each tag has named. `deleted`: branches and tags that were deleted at some time; of
    each whether it was a tag, and its name."""

    def __init__(self, lake: Lake, chance: random.Random) -> None:
        self.tagged: dict[str, set[str]] = defaultdict(set)
        self.deleted: set[tuple[bool, str]] = set()
        self._refs: set[tuple[bool, str]] = set()
        super().__init__(lake, chance, most_branches=4)

    @property
    def tags(self) -> dict[str, str]:
        return self.lake.repository.tags

    def note_heads(self) -> None:
        """Of tags too."""
        super().note_heads()
        for tag, commit in self.tags.items():
            self.tagged[tag].add(commit)
        refs = {(False, name) for name in self.heads} | {(True, name) for name in self.tags}
        self.deleted |= self._refs - refs
        self._refs = refs

    def _commit(self) -> str:
        return self.random.choice(list(self.lake.repository.commits))

    def revert(self) -> None:
        """A new commit with the content of an old one, and so with its metarange."""
        branch = self._any()
        tree = self.lake.trees[self._commit()]
        self.heads[branch] = self.lake.record_tree((self.heads[branch],), tree, f"revert {self.lake.clock}")

    def pick(self, commit: str, branch: str) -> None:
        """A branch gets some of what a commit has."""
        head = self.heads[branch]
        picked = {path: entry for path, entry in self.lake.trees[commit].items() if self.random.random() < 0.7}
        tree = self.lake.trees[head] | picked
        self.heads[branch] = self.lake.record_tree((head,), tree, f"pick {self.lake.clock}")

    def reset(self) -> None:
        """A branch is put to any commit there ever was."""
        self.heads[self._any()] = self._commit()

    def branch_at(self) -> None:
        """A new branch at any commit."""
        if len(self.heads) < self.most_branches:
            self.heads[self.random.choice(self.names)] = self._commit()

    def tag(self) -> None:
        """A tag at any commit; one of that name is deleted before."""
        self.tags[f"t{self.random.randrange(3)}"] = self._commit()

    def untag(self) -> None:
        """Delete a tag."""
        if self.tags:
            del self.tags[self.random.choice(sorted(self.tags))]

    def unreferenced(self) -> list[str]:
        """Addresses of objects that no branch and no tag names now: what a collection may delete."""
        kept = {
            entry.address
            for head in {*self.heads.values(), *self.tags.values()}
            for entry in self.lake.trees[head].values()
        }
        named = {entry.address for tree in self.lake.trees.values() for entry in tree.values()}
        return sorted(named - kept)
