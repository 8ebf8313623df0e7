"""Mutants of the engine: each breaks one thing that the promise rests on, and the model has to find it.

What a mutant replaces is named where it is defined; it is replaced in every module that has it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any
from unittest import mock

from django.db.models import Q

from core.holding import Arrival
from core.mirroring.check_planning import Data
from core.mirroring.judgement import CommitProof, Judgement, judge_circumstances
from mirroring.sense.identity import Identity
from mirroring.sweep.kept_commits import Kept
from mirroring.validate.commits import _load
from mirrors.transitions.metarange_states import proven_metaranges
from tests.promise.lives import Life, live

PACKAGES = ("mirrors.", "mirroring.", "installations.", "jobs.", "db.", "core.", "spark_jobs.")

ENGINE = ("manage", "copy_records", "sense.branches", "validate.commits", "promote.branches", "sweep.look")


@dataclass(frozen=True, slots=True)
class Mutant:
    """`told`: what is broken. `replaced`: by the path of a function, what it is instead."""

    name: str
    told: str
    replaced: Mapping[str, Callable[..., Any]]

    def __str__(self) -> str:
        return self.name


def _whatever_is_wrong(known: Any, problem: Any) -> bool:
    """Of a waived object, or gone at both sides."""
    return problem.gone_at_source or known.have(problem)


def _there_if_accepted(problems: int, *, gone: int) -> Data:
    """As if history and heads were one."""
    return Data.WAITING if problems > gone else Data.COMPLETE


def _nothing(*_: Any, **__: Any) -> None:
    """Not done."""


def _nothing_verified(*_: Any, **__: Any) -> Any:
    """Nothing was old or in question."""
    return import_module("mirroring.validate.reverify").Verified()


def _load_but_trust(mirror: Any, rows: Any) -> Any:
    """Of what a row says to be right nothing else is told."""
    loaded = _load(mirror, rows)
    return replace(loaded, looked_for=loaded.looked_for - proven_metaranges(mirror, loaded.contents.keys()))


def _allowed(*_: Any, **__: Any) -> Judgement:
    """Whatever is asked."""
    return Judgement()


def _as_if_in_order(proof: CommitProof) -> Judgement:
    """History is not asked for."""
    return Judgement()


def _commit_alone(mirror: Any, commits: Collection[tuple[int, int]]) -> None:
    """The rows of the commits, and of none that were built on them."""
    mirror.commits.filter(pk__in=[pk for pk, _ in commits]).update(data="unknown")


def _head_alone(history: Any, sha: str) -> list[int]:
    """The key of the commit itself."""
    return list(history._source.commits.filter(sha=sha).values_list("pk", flat=True))


def _complete(mirror: Any, commit: Any, held: Any) -> Arrival:
    """Whatever is there."""
    return Arrival(mirror.region, "")


def _keeps_nothing(*_: Any) -> Kept:
    """No row counts."""
    return Kept(frozenset(), frozenset())


MUTANTS = (
    Mutant(
        "what was proven of swept ranges still counts",
        "a commit that comes to name what a sweep deletes is whole by what was proven before",
        {"mirroring.sweep.deletions._take_down_unkept": lambda *_: True},
    ),
    Mutant(
        "books from before a deletion are believed",
        "what a backup of the database has proven counts, whatever was deleted since",
        {
            "mirroring.validate.commits.newer_mark": lambda *_: None,
            "mirroring.promote.move_ref.newer_mark": lambda *_: None,
            "mirroring.sweep.deletions.newer_mark": lambda *_: None,
        },
    ),
    Mutant(
        "a sweep asks only refs",
        "what candidates, rows of commits and held merges name is deleted like all that no ref names",
        {"mirroring.sweep.kept_commits.kept_in_books": _keeps_nothing},
    ),
    Mutant(
        "a held merge is released unproven",
        "lakeFS is told that regions have a commit, whatever they have of it",
        {"mirrors.services.holds.arrivals._arrival": _complete},
    ),
    Mutant(
        "a waived object counts as there",
        "a range that lacks only what was waived, or is gone, is complete",
        {"core.mirroring.check_planning.state_with": _there_if_accepted},
    ),
    Mutant(
        "a waiver covers what is wrong",
        "history may hold other bytes than commits say, once their object was waived as missing",
        {"mirrors.models.waived.WaivedAddresses.accept": _whatever_is_wrong},
    ),
    Mutant(
        "the judge is not asked at the act",
        "a ref is moved to whatever the row of its commit called whole when the round began",
        {"core.mirroring.judgement.judge_move": lambda proof, around: judge_circumstances(around)},
    ),
    Mutant(
        "circumstances are not asked at the act",
        "a pause or other settings in the middle of a round change nothing",
        {"core.mirroring.judgement.judge_circumstances": _allowed},
    ),
    Mutant(
        "damage stays with its finder",
        "other ranges that name a lost object stay complete",
        {
            "mirrors.transitions.doubt.doubt_sharers": _nothing,
            "mirroring.validate.doubt_new_coverage.question_shared": _nothing,
        },
    ),
    Mutant(
        "history is not in doubt on damage",
        "a commit found damaged leaves what was built on it as it was",
        {
            "mirrors.transitions.ancestry.reset_ancestry": _nothing,
            "mirrors.transitions.doubt.doubt_commits": _commit_alone,
        },
    ),
    Mutant(
        "what was checked by lesser settings counts",
        "a greater depth asks for nothing anew",
        {
            "mirrors.transitions.validity._take_down": lambda old, new: False,
            "mirrors.models.querysets.CoverageQuerySet.proving": lambda rows, depth: rows.all(),
        },
    ),
    Mutant(
        "memory answers for the destination",
        "a metarange that was read once is never asked for again",
        {"mirrors.queries.metaranges._is_there": lambda store, uri, known: True},
    ),
    Mutant(
        "no intent is written",
        "a worker that ends between its call and its note leaves no trace",
        {"mirrors.transitions.move_intents._write": _nothing},
    ),
    Mutant(
        "records are accepted for good",
        "what a destination lost by a restore is not sent again",
        {
            "mirroring.promote.resend_records.prove_newest": _nothing,
            "mirroring.promote.resend_records.prove_after_404": _nothing,
            "mirroring.promote.resend_records.prove_records": lambda *_: True,
        },
    ),
    Mutant(
        "the head's own record alone is proven before a move",
        "what was copied after a restore hides what was lost by it",
        {"mirrors.queries.ancestors.ShownHistory.beyond": _head_alone},
    ),
    Mutant(
        "a repository made anew is trusted",
        "what was checked before counts in an emptied namespace",
        {"mirrors.transitions.doubt.doubt_all": _nothing},
    ),
    Mutant(
        "what only a read ends is forgotten",
        "content that was read and is wrong goes with its branch, and comes back by another commit",
        {"mirrors.queries.coverage.only_read_ends": lambda: Q(pk__in=[])},
    ),
    Mutant(
        "the source's identity is not asked",
        "a repository of the same name counts as the same, and a strange history as its own",
        {"mirroring.sense.identity.ask_identity": lambda *_: Identity("", certain=True)},
    ),
    Mutant(
        "nothing is checked a second time",
        "what is lost after its proof is never found",
        {"mirroring.validate.reverify.verify": _nothing_verified},
    ),
    Mutant(
        "what is wrong with a proven metarange is not noted",
        "commits that are judged again wait for it for ever",
        {"mirroring.validate.commits._load": _load_but_trust},
    ),
    Mutant(
        "certificates are given on trust",
        "for any head, whatever is known of it",
        {"mirrors.queries.proof_facts.judge": _allowed},
    ),
    Mutant(
        "a head once proven stays so",
        "the page is not told what was taken back",
        {"mirrors.transitions.proven_heads.unprove_heads": _nothing},
    ),
    Mutant(
        "certificates outlive their branches",
        "a stray of the name of a branch that was deleted is taken for ours after a rebuild",
        {"mirroring.certificates.retire_certificate": _nothing},
    ),
    Mutant(
        "what fails for long is not told",
        "a branch that can't be deleted leaves its mirror up to date",
        {"core.mirroring.explain.mirror._with_upkeep": lambda mirror, verdict: verdict},
    ),
    Mutant(
        "when the last check ended is not asked",
        "where nobody checks, all is said to be whole for ever",
        {
            "core.mirroring.explain.mirror._if_checked": lambda mirror, verdict, now: verdict,
            "core.mirroring.explain.mirror._branch_if_checked": lambda mirror, verdict, now: verdict,
        },
    ),
)


@contextmanager
def sabotaged(mutant: Mutant) -> Iterator[None]:
    """The engine with one thing broken. What a mutant replaces has to be there.

    Workers load the engine when they first work: what was loaded here would stay broken.
    """
    for module in ENGINE:
        import_module(f"mirroring.{module}")
    with ExitStack() as stack:
        for path, instead in mutant.replaced.items():
            for place, name in _places(path):
                stack.enter_context(mock.patch.object(place, name, instead))
        yield


def _places(path: str) -> list[tuple[Any, str]]:
    """Wherever a function is known by its name: the module or class that defines it, and those that import it."""
    owner, _, name = path.rpartition(".")
    module, _, cls = owner.rpartition(".")
    if cls[0].isupper():
        return [(getattr(import_module(module), cls), name)]
    made = getattr(import_module(owner), name)
    ours = [known for known_name, known in sorted(sys.modules.items()) if known_name.startswith(PACKAGES)]
    return [(known, name) for known in ours if getattr(known, name, None) is made]


def hunt(owner: Any, mutant: Mutant, seeds: Iterable[int], length: int, passing: Collection[str] = ()) -> Life | None:
    """The first life that shows what is broken; None when all of them went well."""
    with sabotaged(mutant):
        for seed in seeds:
            life = live(owner, seed, length, passing)
            if life.problems:
                return life
    return None
