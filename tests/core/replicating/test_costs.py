"""What a rule would cost, reckoned from pages."""

from __future__ import annotations

from core.replicating.passes.costs import Looked, Pace, Span, estimate, priced, puts_of


def page(lacking: int, objects: int = 1000, size: int = 10, replaced: int = 0, extra: int = 0) -> Looked:
    return Looked(objects, objects * size, lacking, lacking * size, replaced, extra)


def test_what_was_looked_at_whole_is_no_estimate() -> None:
    made = estimate([page(100), page(0, 500)], 1500, whole=True, within=False, scan_every=86_400, pace=Pace(10.0, None))
    assert made.objects == Span(100, 100, 100) and made.egress == Span(1000, 1000, 1000)
    assert (made.put.likely, made.get.likely, made.head.likely) == (100, 100, 100)
    assert made.list == Span(4, 4, 4) and made.list_month == Span(120, 120, 120)
    assert made.seconds == Span(10, 10, 10)


def test_a_sample_stands_for_the_rest_with_a_span_that_holds_what_was_seen() -> None:
    pages = [page(100), page(110), page(90), page(100)]
    made = estimate(pages, 64_000, whole=False, within=False, scan_every=300, pace=Pace())
    assert made.objects.likely == 6400 and made.seconds is None
    assert made.objects.least >= 400 and made.objects.most is not None
    assert made.objects.least < 6400 < made.objects.most < 7500
    uneven = estimate([page(0), page(400)], 64_000, whole=False, within=False, scan_every=300, pace=Pace())
    assert uneven.objects.least == 400 and uneven.objects.likely == 12_800
    one = estimate([page(100)], 64_000, whole=False, within=False, scan_every=300, pace=Pace())
    assert one.objects.least == 100 and one.objects.most is not None and one.objects.most > 12_000


def test_of_a_place_whose_size_nobody_knows_there_is_a_least_alone() -> None:
    made = estimate([page(100)], None, whole=False, within=False, scan_every=300, pace=Pace(None, 100.0))
    assert made.objects == Span(100, 100, None) and made.seconds == Span(10, 10, None)
    assert priced(made.amounts, {"put": 5.0})["put"] == (0.5, 0.5, None)


def test_within_one_store_nothing_leaves_it() -> None:
    made = estimate([page(7)], 1000, whole=True, within=True, scan_every=300, pace=Pace())
    assert made.egress == Span(0, 0, 0) and made.get == Span(0, 0, 0) and made.put.likely == 7


def test_large_objects_take_more_requests_and_replaced_ones_free_their_room() -> None:
    assert puts_of(64 << 20) == 0 and puts_of((64 << 20) + 1) == 6
    made = estimate([page(10, extra=60, replaced=40)], 1000, whole=True, within=False, scan_every=300, pace=Pace())
    assert made.put.likely == 70 and made.storage.likely == 60


def test_prices_are_of_a_thousand_requests_and_of_a_gigabyte() -> None:
    made = estimate([page(1000, size=10**7)], 1000, whole=True, within=False, scan_every=300, pace=Pace())
    told = priced(made.amounts, {"put": 0.005, "egress": 0.09, "list": 5.0})
    assert round(told["put"].likely, 6) == 0.005 and round(told["egress"].likely, 6) == 0.9
    assert told["list_month"].likely == 2 * 8640 * 0.005 and "head" not in told


def test_an_empty_place_costs_its_listings() -> None:
    made = estimate([page(0, 0)], 0, whole=True, within=False, scan_every=300, pace=Pace(1.0))
    assert made.objects == Span(0, 0, 0) and made.list.likely == 2 and made.seconds == Span(0, 0, 0)
    assert estimate([], None, whole=False, within=False, scan_every=300, pace=Pace()).objects == Span(0, 0, None)
