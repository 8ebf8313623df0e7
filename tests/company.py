"""What people do to a source repository of tests/fakes.py, at random, and what its branches have pointed to by that."""

from __future__ import annotations

import random
from collections import defaultdict

from tests.fakes import Lake


class Company:
    """Commits, merges, branches, rewinds. `pointed` and `order`: what each branch is known to have pointed to."""

    def __init__(self, lake: Lake, chance: random.Random, most_branches: int = 5) -> None:
        self.lake, self.random, self.most_branches = lake, chance, most_branches
        self.names = [f"b{number}" for number in range(max(8, most_branches))]
        self.pointed: dict[str, set[str]] = defaultdict(set)
        self.order: dict[str, list[str]] = defaultdict(list)
        self.note_heads()

    @property
    def heads(self) -> dict[str, str]:
        return self.lake.repository.branches

    def note_heads(self) -> None:
        """After each thing that was done: where the branches are now, and what they passed on the way there."""
        for branch, head in self.heads.items():
            chain = self._passed(branch, head)
            self.pointed[branch].update(chain)
            if self.order[branch][-1:] != [head]:
                self.order[branch].extend(reversed(chain))

    def _passed(self, branch: str, head: str) -> list[str]:
        """The head, and the first parents back to the head before, else to the oldest of all earlier ones: who looked
        last when the branch stood there can't know that it did not pass them."""
        earlier, last = self.pointed[branch], self.order[branch][-1:]
        chain, length = [head], 1
        while [chain[-1]] != last and (parents := self.lake.repository.commits[chain[-1]].parents):
            chain.append(parents[0])
            length = len(chain) if parents[0] in earlier else length
        return chain[:length]

    def misled(self, branch: str, old: str, new: str) -> list[str]:
        """What is wrong with a mirror's branch moving so: it never pointed there, or left that for good before."""
        problems = []
        if new not in self.pointed[branch]:
            problems.append(f"{branch} shows {new[:8]}, which the source branch never pointed to")
        order = self.order[branch]
        left = old in order and new in order and order[::-1].index(new) > len(order) - 1 - order.index(old)
        if left and not self._on_the_way(new, order[order.index(old) :]):
            problems.append(f"{branch} goes back from {old[:8]} to {new[:8]}, which the source left before")
        return problems

    def _on_the_way(self, new: str, heads: list[str]) -> bool:
        """Whether a commit lies between one of these heads and a later one: nobody can know that it was jumped."""
        before = set(self._first_parents(new))
        since = next((at for at, head in enumerate(heads) if head in before), len(heads))
        return any(new in self._first_parents(head) for head in heads[since:])

    def _first_parents(self, commit: str) -> list[str]:
        """The commit, and its first parents down to the root."""
        chain = [commit]
        while parents := self.lake.repository.commits[chain[-1]].parents:
            chain.append(parents[0])
        return chain

    # What they do

    def _any(self) -> str:
        return self.random.choice(sorted(self.heads))

    def commit(self) -> None:
        """Write a file, and now and then delete one."""
        branch = self._any()
        tree = self.lake.trees[self.heads[branch]]
        files: dict[str, bytes | None] = {f"k{self.random.randrange(30)}": self.random.randbytes(8)}
        if tree and self.random.random() < 0.3:
            files[self.random.choice(sorted(tree)).decode()] = None
        self.lake.commit(branch, files)

    def commit_many(self) -> None:
        """Several commits in a row."""
        branch = self._any()
        for _ in range(self.random.randrange(2, 6)):
            self.lake.commit(branch, {f"k{self.random.randrange(30)}": self.random.randbytes(8)})
            self.note_heads()

    def merge(self) -> None:
        """One branch into another."""
        if len(self.heads) > 1:
            source, into = self.random.sample(sorted(self.heads), 2)
            self.lake.merge(source, into)

    def branch(self) -> None:
        """A new branch, perhaps of a name that was used before."""
        if len(self.heads) < self.most_branches:
            self.heads[self.random.choice(self.names)] = self.heads[self._any()]

    def unbranch(self) -> None:
        """Delete a branch."""
        branch = self._any()
        if branch != "main":
            del self.heads[branch]

    def rewind(self) -> None:
        """Put a branch back by one commit."""
        branch = self._any()
        parents = self.lake.repository.commits[self.heads[branch]].parents
        if parents:
            self.heads[branch] = parents[0]
