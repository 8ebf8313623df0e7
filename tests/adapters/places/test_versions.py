"""Listings of versions as stores write them."""

from __future__ import annotations

import pytest

from adapters.places.version_writes import UnevenLayout
from adapters.places.versions import VersionedPlace
from core.errors import RemoteFailure
from tests.exports.memory_s3 import Answer, MemoryS3
from tests.replication.world import Asked


def element(tag: str, key: str, version: str, at: str = "", *, latest: bool = False) -> str:
    own = "<ETag>&quot;e&quot;</ETag><Size>1</Size>" if tag == "Version" else ""
    told = f"<VersionId>{version}</VersionId><IsLatest>{str(latest).lower()}</IsLatest>"
    return f"<{tag}><Key>{key}</Key>{told}<LastModified>2026-11-27T12:00:{at}Z</LastModified>{own}</{tag}>"


class Told(MemoryS3):
    """A store that gives these answers, one after the other."""

    def __init__(self, *bodies: str) -> None:
        super().__init__()
        self.bodies, self.urls = list(bodies), list[str]()
        self.asked = Asked(self)

    def send(self, method: str, url: str, *more: object, **named: object) -> Answer:  # type: ignore[override]
        self.urls.append(url)
        return Answer(self.bodies.pop(0).encode(), {})


def listed(*elements: str, more: str = "<IsTruncated>false</IsTruncated>") -> str:
    return f"<ListVersionsResult>{more}{''.join(elements)}</ListVersionsResult>"


def ids(*elements: str) -> list[tuple[str, str]]:
    page = VersionedPlace(Told(listed(*elements)), "s3://b").versions("")
    return [(key, version.id) for key, version in page.entries]


def test_a_listing_in_order_is_taken_as_it_is_whatever_its_times_say() -> None:
    told = [
        element("Version", "a", "3", "05", latest=True),
        element("DeleteMarker", "a", "2", "09"),
        element("Version", "a", "1", "01"),
        element("DeleteMarker", "b", "4", "02", latest=True),
    ]
    assert ids(*told) == [("a", "3"), ("a", "2"), ("a", "1"), ("b", "4")]


def test_markers_that_are_told_after_all_versions_are_put_where_their_times_say() -> None:
    told = [
        element("Version", "a", "4", "05", latest=True),
        element("Version", "a", "1", "01"),
        element("Version", "b", "5", "01"),
        element("DeleteMarker", "a", "2", "03"),
        element("DeleteMarker", "b", "6", "02", latest=True),
    ]
    assert ids(*told) == [("a", "4"), ("a", "2"), ("a", "1"), ("b", "6"), ("b", "5")]


def test_times_that_contradict_what_is_latest_are_not_believed() -> None:
    upload = element("Version", "a", "2", "01", latest=True)  # begun before the marker was made
    assert ids(upload, element("DeleteMarker", "a", "1", "03")) == [("a", "2"), ("a", "1")]


def test_the_next_page_is_asked_for_by_what_the_store_told() -> None:
    more = "<IsTruncated>true</IsTruncated><NextKeyMarker>p/a[cache:v2]</NextKeyMarker>"
    first = listed(element("Version", "p/a", "2"), more=f"{more}<NextVersionIdMarker>2</NextVersionIdMarker>")
    store = Told(first, listed(element("Version", "p/a", "1"), element("Version", "p/ab", "9")))
    place = VersionedPlace(store, "s3://b/p")
    assert [version.id for version in place.chain("a")] == ["1", "2"]
    assert "key-marker=p%2Fa%5Bcache%3Av2%5D" in store.urls[1] and "version-id-marker=2" in store.urls[1]


def test_the_places_own_directory_object_has_no_name() -> None:
    store = Told(listed(element("Version", "p/", "1"), element("Version", "p/a", "2")))
    assert [key for key, _ in VersionedPlace(store, "s3://b/p").versions("").entries] == ["a"]


def test_what_is_no_listing_proves_nothing() -> None:
    for body in ("", "<html></html>", "<ListVersionsResult></ListVersionsResult>"):
        store = Told(*[body] * 9)
        with pytest.raises(RemoteFailure):
            VersionedPlace(store, "s3://b").versions("")
    with pytest.raises(RemoteFailure):
        VersionedPlace(Told("<html></html>"), "s3://b").versioning()


def test_parts_of_any_sizes() -> None:
    layout = UnevenLayout(18, 0, (5, 12, 1))
    assert layout.count == 3 and [layout.span(number) for number in (1, 2, 3)] == [(0, 5), (5, 17), (17, 18)]
    assert layout.fits(2, 12) and not layout.fits(2, 5) and not layout.fits(4, 1)
