"""A map of regions: nothing covers anything, and what can't be read is not drawn."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from core.text.region_map import HEIGHT, LABEL, MOST_REGIONS, NODE, WIDTH, RegionMap, lay_out

Box = tuple[float, float, float, float]


def boxes(drawn: RegionMap) -> list[Box]:
    return [(node.x, node.y, *NODE) for node in drawn.nodes] + [(edge.x, edge.y, *LABEL) for edge in drawn.edges]


def overlap(one: Box, other: Box) -> bool:
    beside = abs(one[0] - other[0]) < (one[2] + other[2]) / 2
    return beside and abs(one[1] - other[1]) < (one[3] + other[3]) / 2


@pytest.mark.parametrize("regions", range(2, 7))
def test_no_word_covers_another_though_every_region_mirrors_every_other(regions: int) -> None:
    pairs = list(permutations([f"region-{n}" for n in range(regions)], 2))
    drawn = lay_out(pairs)
    if drawn is None:
        assert regions > 4
        return
    assert [edge.pair for edge in drawn.edges] == pairs
    assert not [pair for pair in combinations(boxes(drawn), 2) if overlap(*pair)]
    for x, y, wide, high in boxes(drawn):
        assert wide / 2 <= x <= WIDTH - wide / 2 and high / 2 <= y <= HEIGHT - high / 2


@pytest.mark.parametrize("regions", range(2, MOST_REGIONS + 1))
def test_one_source_with_a_mirror_in_every_other_region_is_drawn(regions: int) -> None:
    drawn = lay_out([("origin", f"region-{n:02}") for n in range(regions - 1)])
    assert drawn and len(drawn.edges) == regions - 1
    assert not [pair for pair in combinations(boxes(drawn), 2) if overlap(*pair)]


def test_what_can_not_be_read_is_left_to_the_table() -> None:
    assert lay_out([]) is None
    assert lay_out([("origin", f"region-{n}") for n in range(MOST_REGIONS)]) is None
    assert lay_out([("home", "home")]) is None
    assert lay_out(list(permutations([f"region-{n}" for n in range(MOST_REGIONS)], 2))) is None


def test_what_stays_inside_of_a_region_is_no_connection() -> None:
    drawn = lay_out([("home", "home"), ("home", "away")])
    assert drawn and [edge.pair for edge in drawn.edges] == [("home", "away")]


def test_both_directions_are_told_apart() -> None:
    drawn = lay_out([("a", "b"), ("b", "a")])
    assert drawn
    there, back = drawn.edges
    assert there.path != back.path and abs(there.y - back.y) > LABEL[1]
    assert (there.turn, back.turn) == (pytest.approx(0, abs=15), pytest.approx(180, abs=15)) or abs(back.turn) > 165
