"""The order of the log and the meaning of expressions, as a real server had them."""

from __future__ import annotations

import pytest

from core.types import Commit
from sandbox.lakefs.errors import Refused
from sandbox.lakefs.model import Branch, Repository, new_commit
from sandbox.lakefs.refs import log, merge_base, resolve, resolve_commit


class History:
    """A repository made of named commits."""

    def __init__(self) -> None:
        self.repository = Repository("lake", "s3://b/lake", "main", 0)
        self.named: dict[str, Commit] = {}

    def add(self, name: str, date: int, *parents: str) -> None:
        made = new_commit(
            parents=tuple(self.named[parent] for parent in parents),
            committer="admin",
            message=name,
            creation_date=date,
            metarange_id="",
            metadata={},
        )
        self.named[name] = self.repository.add(made)

    def walk(self, name: str, *, first_parent: bool = False) -> list[str]:
        start = self.named[name].id
        return [commit.message for commit in log(self.repository, start, first_parent=first_parent)]


@pytest.fixture
def history() -> History:
    """Three branches with dates of their own, merged into main one after the other."""
    made = History()
    made.add("root", 2000)
    made.add("base", 100, "root")
    for name, date, parent in (("x1", 5, "base"), ("x2", 6, "x1"), ("x3", 7, "x2")):
        made.add(name, date, parent)
    made.add("y1", 1000, "base")
    made.add("z1", 1000, "base")
    made.add("z2", 900, "z1")
    made.add("m1", 500, "base")
    made.add("merge x", 2000, "m1", "x3")
    made.add("merge y", 2000, "merge x", "y1")
    made.add("merge z", 2000, "merge y", "z2")
    return made


def test_the_log_goes_by_date_and_so_not_parents_last(history: History) -> None:
    expected = "merge z,merge y,merge x,y1,z2,z1,m1,base,root,x3,x2,x1"
    assert history.walk("merge z") == expected.split(",")


def test_the_first_parents_alone(history: History) -> None:
    assert history.walk("merge z", first_parent=True) == ["merge z", "merge y", "merge x", "m1", "base", "root"]


def test_a_log_over_a_missing_record_is_not_found(history: History) -> None:
    del history.repository.commits[history.named["z1"].id]
    with pytest.raises(Refused, match="commit not found"):
        history.walk("merge z")


def test_the_common_ancestor(history: History) -> None:
    base = merge_base(history.repository, history.named["m1"].id, history.named["z2"].id)
    assert base is not None
    assert base.message == "base"


def test_expressions_step_back_and_hide_what_is_staged(history: History) -> None:
    repository = history.repository
    repository.branches["main"] = Branch(history.named["merge z"].id, staged={b"a": None})
    repository.tags["v1"] = history.named["m1"].id
    meant = {
        "main~2": "merge x",
        "main^2": "z2",
        "main^2~1": "z1",
        "main^0": "merge z",
        "main@": "merge z",
        "v1": "m1",
        history.named["y1"].id[:10]: "y1",
    }
    assert {said: resolve_commit(repository, said).message for said in meant} == meant
    assert resolve(repository, "main").staged
    assert not resolve(repository, "main@").staged


@pytest.mark.parametrize("said", ["nope", "main~99", "main^3", "ab", "", "~1"])
def test_what_is_not_there_is_not_found(history: History, said: str) -> None:
    history.repository.branches["main"] = Branch(history.named["merge z"].id)
    with pytest.raises(Refused, match="not found"):
        resolve(history.repository, said)
