"""Has a mirror's repository rules of garbage collection of its own? What was read of both sides, what it means. Pure.

Rules lie in a repository's namespace, so replication brings the source's along: the same rules at both sides are those.
Other ones were set at the destination, through another repository over the place: lakeFS takes none, and collects
nothing, in a read-only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import LakeMirrorError
from core.text.phrases import count
from core.types import GcRules

RULES_FILE = "_lakefs/retention/gc/rules/config.json"
"""Where lakeFS keeps them, below the namespace."""


@dataclass(frozen=True, slots=True)
class RulesRead:
    """One side's rules, None without any; `error` says why nobody knows."""

    rules: GcRules | None = None
    error: str = ""

    @staticmethod
    def of(answer: GcRules | LakeMirrorError | None) -> RulesRead:
        """What an answer, or the lack of one, tells."""
        return RulesRead(error=str(answer)) if isinstance(answer, LakeMirrorError) else RulesRead(answer)


@dataclass(frozen=True, slots=True)
class BothRules:
    """The rules of a mirror's source, and those of its own repository."""

    source: RulesRead
    mirror: RulesRead

    @property
    def own(self) -> GcRules | None:
        """The mirror's, if they are other ones than the source's; None also where nobody knows."""
        if self.source.error or self.mirror.error or self.mirror.rules == self.source.rules:
            return None
        return self.mirror.rules

    @property
    def unread(self) -> str:
        """Why nobody knows whether the mirror has rules of its own; "" where that is known."""
        return self.mirror.error or self.source.error


def rules_json(both: BothRules) -> dict[str, Any]:
    """As a column keeps it; `both_of` reads it."""
    return {"source": _side_json(both.source), "mirror": _side_json(both.mirror)}


def _side_json(side: RulesRead) -> dict[str, Any]:
    if side.rules is None:
        return {"days": None, "branches": {}, "error": side.error}
    return {"days": side.rules.default_days, "branches": dict(side.rules.branches), "error": ""}


def both_of(kept: Mapping[str, Any] | None) -> BothRules | None:
    """What `rules_json` has kept; None where not read yet."""
    return BothRules(_side_of(kept["source"]), _side_of(kept["mirror"])) if kept else None


def _side_of(kept: Mapping[str, Any]) -> RulesRead:
    days = kept["days"]
    return RulesRead(None if days is None else GcRules(days, kept["branches"]), kept["error"])


def retention(rules: GcRules | None) -> str:
    """The rules in words."""
    if rules is None:
        return "none"
    branches = [f"{name} {count(days, 'day')}" for name, days in sorted(rules.branches.items())]
    return ", ".join([count(rules.default_days, "day"), *branches])


def own_rules_warning(both: BothRules | None, *, name: str, source: str, namespace: str) -> str:
    """What to tell of a mirror whose repository has rules of its own, and what to do; "" without such. Both end without
    a full stop."""
    if both is None or both.own is None:
        return ""
    said = say_own_rules(both, name=name, source=source, namespace=namespace)
    return f"{said}. {own_rules_advice(both, source=source, namespace=namespace)}"


def say_own_rules(both: BothRules, *, name: str, source: str, namespace: str) -> str:
    """What is wrong with a mirror's own rules."""
    return (
        f"the repository {name} has garbage-collection rules of its own ({retention(both.own)}; those of {source}: "
        f"{retention(both.source.rules)}). Garbage collection must run at the source alone: a run over {namespace}, "
        "through a writable repository there, would delete objects that no commit there refers to yet and that "
        "replication does not send again"
    )


def own_rules_advice(both: BothRules, *, source: str, namespace: str) -> str:
    """What to do about them."""
    return f"{_ADVICE}{_away(both, source, namespace)}"


_ADVICE = (
    "If they were just changed at the source, wait until they have arrived. Otherwise find out who set them, delete "
    "every other repository in that namespace, and "
)


def _away(both: BothRules, source: str, namespace: str) -> str:
    if both.source.rules:
        return f"save those of {source} again, so that replication overwrites these"
    return f"delete {namespace}/{RULES_FILE} in the store"


def unread_rules_note(both: BothRules | None, *, name: str) -> str:
    """What to tell where the rules could not be read; "" where they could, or where nobody has tried yet. It ends
    without a full stop."""
    if both is None or not both.unread:
        return ""
    return f"whether the repository {name} has garbage-collection rules of its own could not be read: {both.unread}"
