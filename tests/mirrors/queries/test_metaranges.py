"""Metaranges that need not be read again: in memory, and on the local disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from core.types import ObjectInfo
from deployment import config
from graveler.metarange import RangeRef
from mirrors.models import Mirror
from mirrors.queries import metaranges
from mirrors.queries.metarange_cache import Found, MetarangeCache
from mirrors.queries.metaranges import load_metaranges
from tests.deployment.test_config import SOURCE
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "m"


def found(ranges: int = 1) -> Found:
    return Found(tuple(RangeRef(f"{n:064}", b"a", b"b", 1, 1) for n in range(ranges)))


def memory(told: Mapping[str, Any]) -> MetarangeCache:
    """The memory of a process with these settings of the validator."""
    settings = config.parse({**SOURCE, "validator": told})
    with mock.patch.object(config, "current", lambda: settings):
        return metaranges.remembered.__wrapped__()


def test_so_many_metaranges_are_remembered_as_the_configuration_says() -> None:
    cache = memory({"metarange_presence_cache": {"size": 2}})
    for pk in range(3):
        cache.put(str(pk), found())
        cache.get("0")
    assert [cache.get(str(pk)) is not None for pk in range(3)] == [True, False, True]


def test_so_many_ranges_are_remembered_as_the_configuration_says() -> None:
    cache = memory({"range_presence_cache": {"size": 10}})
    cache.put("1", found(6))
    cache.put("1", found(6))
    cache.put("2", found(4))
    assert cache.get("1")
    cache.put("3", found(1))
    assert [cache.get(str(pk)) is not None for pk in (1, 2, 3)] == [True, False, True]


def test_a_metarange_is_remembered_no_longer_than_the_configuration_says() -> None:
    cache = memory({"metarange_presence_cache": {"expiry": "90s"}})
    now = 1000.0
    cache._clock = lambda: now
    cache.put(KEY, found())
    now += 89
    assert cache.get(KEY)
    now += 2
    assert cache.get(KEY) is None
    cache.put(KEY, found())
    assert cache.get(KEY)


# --- on the local disk ------------------------------------------------------------------------------------------------


@pytest.fixture
def metarange(lm: Deployment) -> str:
    """The id of a metarange that was read once, by a process that has forgotten it since."""
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    metarange_id = lm.lake.files_of(commit)[0]
    assert load(metarange_id).ranges
    return metarange_id


def load(metarange_id: str) -> Found:
    """What a process that has just started finds."""
    metaranges.remembered().clear()
    return load_metaranges(Mirror.objects.get(), [metarange_id])[metarange_id]


def fetched(lm: Deployment, metarange_id: str) -> tuple[Found, int]:
    """What is found, and how many files were fetched for it."""
    with mock.patch.object(lm.eu_store, "get", side_effect=lm.eu_store.get) as get:
        return load(metarange_id), get.call_count


def kept_file(lm: Deployment) -> Path:
    (path,) = (path for path in lm.local_cache.folder.rglob("*") if path.is_file())
    return path


def test_what_was_read_once_is_not_fetched_again(lm: Deployment, metarange: str) -> None:
    result, gets = fetched(lm, metarange)
    assert (len(result.ranges), gets) == (1, 0)


@pytest.mark.parametrize("change", ["damaged", "cut", "empty", "another's"])
def test_a_damaged_file_of_the_cache_is_never_trusted(lm: Deployment, metarange: str, change: str) -> None:
    path = kept_file(lm)
    whole = path.read_bytes()
    other = lm.us_store.objects[f"s3://src/lake/_lakefs/{lm.lake.files_of(lm.lake.commit(files={'b': b'2'}))[0]}"]
    damaged = whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]
    path.write_bytes({"damaged": damaged, "cut": whole[:-9], "empty": b"", "another's": other}[change])
    result, gets = fetched(lm, metarange)
    assert (len(result.ranges), gets) == (1, 1)
    assert path.read_bytes() == whole


def test_the_cache_tells_nothing_of_what_the_destination_has(lm: Deployment, metarange: str) -> None:
    uri = f"{NAMESPACE}/_lakefs/{metarange}"
    whole = lm.eu_store.objects.pop(uri)
    assert load(metarange).reason == "metarange-missing"
    lm.eu_store.objects[uri] = whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]
    assert load(metarange).reason == "metarange-damaged"


@pytest.mark.parametrize(
    "said", [{"encryption": "aws:kms"}, {"etag": "0123456789abcdef0123456789abcdef-2"}, {"storage_class": "GLACIER"}]
)
def test_where_the_store_can_not_tell_that_it_is_the_same_file_it_is_fetched(
    lm: Deployment, metarange: str, said: dict[str, str]
) -> None:
    head = lm.eu_store.head

    def told(uri: str) -> ObjectInfo | None:
        there = head(uri)
        return there._replace(**said) if there else None  # type: ignore[arg-type]

    with mock.patch.object(lm.eu_store, "head", told):
        assert fetched(lm, metarange)[1] == 1
