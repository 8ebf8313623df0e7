"""The packages that requirements/*.txt pin, and what an environment says of those that are installed in it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

from supply import ROOT

Installed = dict[str, Distribution]
"""By canonical name."""


class Missing(Exception):
    """The environment is not the one that requirements/ pins; says what to do."""


@dataclass(frozen=True)
class Package:
    """A pin: its name as the lock has it, the version, and the stage that it belongs to."""

    name: str
    version: str
    stage: str

    @property
    def key(self) -> str:
        return canonical(self.name)


def canonical(name: str) -> str:
    """As indexes compare names: `Foo_Bar.baz` is `foo-bar-baz`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(stages: Iterable[str], root: Path = ROOT) -> list[Package]:
    """The pins of these stages, by name; what several pin belongs to the first of them."""
    found: dict[str, Package] = {}
    for stage in stages:
        text = (root / "requirements" / f"{stage}.txt").read_text()
        for name, version in re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==([^\s;\\]+)", text, re.MULTILINE):
            found.setdefault(canonical(name), Package(name, version, stage))
    return sorted(found.values(), key=lambda package: package.key)


def installed(path: Sequence[str] | None = None) -> Installed:
    """What can be imported from `path` (`sys.path` unless told); of two with one name the first, as Python does."""
    found: Installed = {}
    for distribution in distributions(path=list(path or sys.path)):
        found.setdefault(canonical(distribution.name), distribution)
    return found


def require(packages: Iterable[Package], environment: Installed) -> None:
    """Missing unless each is installed in the pinned version."""
    wrong = []
    for package in packages:
        here = environment.get(package.key)
        if here is None or here.version != package.version:
            wrong.append(f"{package.name} {package.version} ({here.version if here else 'nothing'} is there)")
    if wrong:
        hint = "./scripts/test installs what is pinned"
        raise Missing(f"the environment is not what requirements/ pins: {', '.join(wrong)}. {hint}")


def asked_for(stages: Iterable[str], root: Path = ROOT) -> list[Requirement]:
    """What the *.in files of these stages name: the packages that LakeMirror itself imports or starts."""
    lines = [line for stage in stages for line in (root / "requirements" / f"{stage}.in").read_text().splitlines()]
    return [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]


def graph(roots: Iterable[Requirement], environment: Installed) -> dict[str, set[str]]:
    """Which package needs which, from `roots` on: canonical names, with the extras that somebody asks for."""
    edges: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    waiting = list(roots)
    while waiting:
        requirement = waiting.pop()
        name = canonical(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) in seen or name not in environment:
                continue
            seen.add((name, extra))
            needed = [one for one in _needs(environment[name], extra) if canonical(one.name) in environment]
            edges.setdefault(name, set()).update(canonical(one.name) for one in needed)
            waiting += needed
    return edges


def _needs(distribution: Distribution, extra: str) -> list[Requirement]:
    """What it says that it needs on this machine, with this extra."""
    said = [Requirement(line) for line in distribution.requires or []]
    return [one for one in said if one.marker is None or one.marker.evaluate({"extra": extra})]
