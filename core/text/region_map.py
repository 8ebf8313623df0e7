"""Where regions and the connections between them are drawn on a map, so that no word covers another; pure.

Regions stand on an ellipse. A connection is a curve that bends to its right, so that both directions can be told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import atan2, cos, degrees, hypot, pi, sin

WIDTH, HEIGHT = 1150, 560
MOST_REGIONS = 12
"""More than that are told by a table alone."""
NODE = (170, 46)
"""Width and height of a region's box, in pixels."""
LABEL = (150, 24)
"""The same of a connection's label."""
BEND = 0.22
"""How far a curve goes aside, as a share of its length."""
_ARROW = 0.16
"""How far on from its label a curve has its arrow."""
_TRIED = (0.5, 0.42, 0.58, 0.34, 0.66, 0.28, 0.72)

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Node:
    """A region's box, by its middle."""

    region: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A connection: its curve as a path of SVG, the middle of its label, and its arrow: where, and turned by how many
    degrees."""

    pair: Pair
    path: str
    x: float
    y: float
    arrow_x: float
    arrow_y: float
    turn: float


@dataclass(frozen=True, slots=True)
class RegionMap:
    """All that is drawn."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]


def lay_out(pairs: Sequence[Pair]) -> RegionMap | None:
    """A map of these connections, without those inside of one region; None if it could not be read: too many regions,
    or no room for a label."""
    pairs = [(origin, region) for origin, region in pairs if origin != region]
    regions = sorted({region for pair in pairs for region in pair})
    if not 2 <= len(regions) <= MOST_REGIONS:
        return None
    nodes = {region: _node(region, n, len(regions)) for n, region in enumerate(regions)}
    taken = [(node.x, node.y, *NODE) for node in nodes.values()]
    edges = []
    for origin, region in pairs:
        edge = next(_free(nodes[origin], nodes[region], taken), None)
        if edge is None:
            return None
        taken.append((edge.x, edge.y, *LABEL))
        edges.append(edge)
    return RegionMap(list(nodes.values()), edges)


def _node(region: str, number: int, of: int) -> Node:
    angle = pi + 2 * pi * number / of
    radius_x, radius_y = WIDTH / 2 - NODE[0] / 2 - 10, HEIGHT / 2 - NODE[1] / 2 - 10
    return Node(region, round(WIDTH / 2 + radius_x * cos(angle), 1), round(HEIGHT / 2 + radius_y * sin(angle), 1))


def _free(start: Node, end: Node, taken: Sequence[tuple[float, float, float, float]]) -> Iterator[Edge]:
    """Ways to draw a connection whose label covers nothing, the best first."""
    across, down = end.x - start.x, end.y - start.y
    middle_x, middle_y = (start.x + end.x) / 2, (start.y + end.y) / 2
    for bend in chain((BEND,), (BEND * more for more in (1.6, 0.5, 2.2))):
        aside_x, aside_y = middle_x - down * bend, middle_y + across * bend
        for share in _TRIED:
            x, y = _at(start, (aside_x, aside_y), end, share)
            if _is_free(x, y, taken):
                yield _edge(start, (aside_x, aside_y), end, share)


def _is_free(x: float, y: float, taken: Sequence[tuple[float, float, float, float]]) -> bool:
    wide, high = LABEL
    if not (wide / 2 <= x <= WIDTH - wide / 2 and high / 2 <= y <= HEIGHT - high / 2):
        return False
    return all(abs(x - at_x) >= (wide + w) / 2 or abs(y - at_y) >= (high + h) / 2 for at_x, at_y, w, h in taken)


def _edge(start: Node, aside: tuple[float, float], end: Node, share: float) -> Edge:
    x, y = _at(start, aside, end, share)
    later = share + _ARROW if share <= 0.5 else share - _ARROW
    arrow_x, arrow_y = _at(start, aside, end, later)
    ahead_x, ahead_y = _at(start, aside, end, later + 0.01)
    assert hypot(ahead_x - arrow_x, ahead_y - arrow_y) > 0
    turn = degrees(atan2(ahead_y - arrow_y, ahead_x - arrow_x))
    path = f"M{start.x:g} {start.y:g}Q{aside[0]:.1f} {aside[1]:.1f} {end.x:g} {end.y:g}"
    return Edge((start.region, end.region), path, *(round(n, 1) for n in (x, y, arrow_x, arrow_y, turn)))


def _at(start: Node, aside: tuple[float, float], end: Node, share: float) -> tuple[float, float]:
    """A point of a quadratic Bézier curve."""
    rest = 1 - share
    first, middle, last = rest * rest, 2 * rest * share, share * share
    return (
        first * start.x + middle * aside[0] + last * end.x,
        first * start.y + middle * aside[1] + last * end.y,
    )
