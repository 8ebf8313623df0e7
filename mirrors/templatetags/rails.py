"""A branch as a line of commits, drawn without a template: a page has a hundred of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from core.mirroring.states import Stage
from core.text.phrases import SHORT_ID
from mirrors.status.mirror import BranchStatus, RailCommit

register = template.Library()

WIDTH, EDGE = 216, 12
_ALONE = mark_safe('<span class="dim">—</span>')
_SMALL, _LARGE = '<circle cx="{x}" cy="12" r="3.5"/>', '<circle cx="{x}" cy="12" r="6"/>'
_SHAPES = {
    Stage.HEAD: '<circle class="ring" cx="{x}" cy="12" r="8.5"/><circle cx="{x}" cy="12" r="5.5"/>',
    Stage.PAST: _SMALL,
    Stage.READY: _SMALL,
    Stage.CHECKING: _LARGE + '<path class="fill" d="M{x} 6a6 6 0 0 0 0 12z"/>',
    Stage.BLOCKED: _LARGE + '<path transform="translate({x} 12)" d="m-2.2-2.2 4.4 4.4m0-4.4-4.4 4.4"/>',
}


@dataclass(frozen=True, slots=True)
class Dot:
    """A commit at its place on the line."""

    x: int
    commit: RailCommit

    def drawn(self) -> str:
        """Its shape, with the commit's id and stage for who points at it. Nothing of it was typed by anybody."""
        stage = self.commit.stage
        shape = _SHAPES.get(stage, _LARGE).format(x=self.x)
        return f'<g class="{stage}"><title>{escape(self.commit.commit_id[:SHORT_ID])}: {stage.word}</title>{shape}</g>'


@register.simple_tag
def rail(branch: BranchStatus) -> SafeString:
    """A branch as a line of commits from the mirror's head to the source's."""
    dots = _spread(branch.rail, hidden=branch.hidden, started=bool(branch.mirror_head))
    if not dots:
        return _ALONE
    done = [dot.x for dot in dots if dot.commit.stage in (Stage.PAST, Stage.HEAD, Stage.READY)]
    end = max(done, default=0) if branch.mirror_head else 0
    drawn = [
        f'<svg class="rail" viewBox="0 0 {WIDTH} 24" width="{WIDTH}" height="24" role="img" '
        f'aria-label="{escape(_label(branch))}"><path class="way" d="M{EDGE} 12H{dots[-1].x}"/>',
        f'<path class="done" d="M{EDGE} 12H{end}"/>' if end > EDGE else "",
        *(dot.drawn() for dot in dots),
        f'<text x="{_gap(dots)}" y="8" text-anchor="middle">+{branch.hidden}</text>' if branch.hidden else "",
        "</svg>",
    ]
    return mark_safe("".join(drawn))


def _spread(commits: Sequence[RailCommit], *, hidden: int, started: bool) -> list[Dot]:
    """Dots with even distances; a gap takes one place more, and so does the head that a new mirror doesn't have yet."""
    gap = max(1, len(commits) - 3) if hidden else len(commits)
    alone = len(commits) == 1
    places = [number + (number >= gap) + (alone or not started) for number in range(len(commits))]
    last = max(places[-1], 1) if places else 1
    step = (WIDTH - 2 * EDGE) / last
    return [Dot(round(EDGE + place * step), commit) for place, commit in zip(places, commits, strict=True)]


def _gap(dots: Sequence[Dot]) -> float:
    """Where "+n" stands: in the middle of the widest distance."""
    pairs = list(pairwise(dots))
    if not pairs:
        return 0
    left, right = max(pairs, key=lambda pair: pair[1].x - pair[0].x)
    return (left.x + right.x) / 2


def _label(branch: BranchStatus) -> str:
    """The rail in words."""
    shown = [commit.stage for commit in branch.rail if commit.stage not in (Stage.PAST, Stage.HEAD)]
    if not shown:
        return "The mirror's head is the source's head" if branch.mirror_head else "Not at the mirror"
    counted = [f"{shown.count(stage)} {stage.word.lower()}" for stage in Stage if stage in shown]
    more = f", {branch.hidden} more" if branch.hidden else ""
    return f"Ahead of the mirror's head: {', '.join(counted)}{more}"
