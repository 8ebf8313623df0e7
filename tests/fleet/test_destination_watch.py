"""What the watcher of a first copy finds: each kind of thing that lies there too early."""

from __future__ import annotations

import hashlib

from graveler.entries import Entry, Timestamp
from graveler.metarange import write_metarange
from graveler.ranges import write_range
from tests.fakes import FakeStore
from tests.fleet.destination_watch import DestinationWatch

NAMESPACE = "s3://there/lake"
BODY = b"an object"
ENTRY = Entry(b"a", "data/1", len(BODY), hashlib.md5(BODY).hexdigest(), Timestamp(1), {}, "text/plain")
RANGE = write_range([ENTRY])
METARANGE = write_metarange([RANGE.ref])
FILES = {"data/1": BODY, f"_lakefs/{RANGE.id}": RANGE.data, f"_lakefs/{METARANGE.id}": METARANGE.data}


def watch_over(*keys: str, **other: bytes) -> DestinationWatch:
    """Somebody who has looked once at a namespace with these files, and at `METARANGE` if it is there; `data`: another
    body for the object."""
    store = FakeStore()
    bodies = FILES | {"data/1": other.get("data", BODY)}
    store.objects = {f"{NAMESPACE}/{key}": bodies[key] for key in keys}
    shown = [METARANGE.id] if f"_lakefs/{METARANGE.id}" in keys else []
    watch = DestinationWatch(store, NAMESPACE, lambda: shown)
    watch.look()
    return watch


def test_all_that_is_named_is_there() -> None:
    watch = watch_over(*FILES)
    assert (watch.problems, watch.whole, watch.looks) == ([], 2, 1)


def test_a_range_lies_there_without_its_data() -> None:
    assert watch_over(f"_lakefs/{RANGE.id}").problems == [
        f"{RANGE.id[:8]} lies there, but data/1 does not (1 such)",
    ]


def test_a_metarange_lies_there_without_its_range() -> None:
    assert watch_over("data/1", f"_lakefs/{METARANGE.id}").problems == [
        f"{METARANGE.id[:8]} lies there, but _lakefs/{RANGE.id} does not (1 such)",
        f"a branch shows {METARANGE.id[:8]}, but {RANGE.id[:8]} does not lie there",
    ]


def test_a_branch_shows_a_commit_whose_metarange_is_not_there() -> None:
    watch = DestinationWatch(FakeStore(), NAMESPACE, lambda: [METARANGE.id])
    watch.look()
    assert watch.problems == [f"a branch shows {METARANGE.id[:8]}, but {METARANGE.id[:8]} does not lie there"]


def test_an_object_lies_there_with_other_content() -> None:
    assert "data/1 has other content" in watch_over(*FILES, data=b"another one").problems[0]


def test_data_alone_is_no_problem() -> None:
    assert watch_over("data/1").problems == []


def test_what_came_while_the_listing_went_on_is_asked_for() -> None:
    watch = watch_over(*FILES)
    late = FILES["data/1"]

    class Late(FakeStore):
        """The object arrives when its folder has been listed."""

        def list(self, prefix_uri: str):  # type: ignore[no-untyped-def]
            yield from super().list(prefix_uri)
            self.objects[f"{NAMESPACE}/data/1"] = late

    store = Late()
    store.objects = {f"{NAMESPACE}/{key}": data for key, data in FILES.items() if key != "data/1"}
    watch = DestinationWatch(store, NAMESPACE, lambda: [METARANGE.id])
    watch.look()
    assert watch.problems == []
