"""Two places are one where address and store are."""

from __future__ import annotations

import pytest

from core.installations.places import AWS, Place, inside, overlap, store_at


@pytest.mark.parametrize(
    ("endpoint", "store"),
    [
        ("", AWS),
        ("https://s3.amazonaws.com", AWS),
        ("https://s3.eu-west-1.amazonaws.com/", AWS),
        ("https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com", AWS),
        ("https://s3.cn-north-1.amazonaws.com.cn", AWS),
        ("https://amazonaws.com.example.org", "amazonaws.com.example.org"),
        ("https://notamazonaws.com", "notamazonaws.com"),
        ("http://minio:9000", "minio:9000"),
        ("http://MinIO:9000/", "minio:9000"),
        ("http://minio.", "minio"),
        ("http://minio", "minio"),
        ("http://minio:80", "minio"),
        ("https://minio", "minio"),
        ("https://minio:443", "minio"),
        ("http://[::1]:9000", "::1:9000"),
    ],
)
def test_an_endpoint_is_known_again_however_it_is_written(endpoint: str, store: str) -> None:
    assert store_at(endpoint) == store


def test_the_same_address_in_another_store_is_another_place() -> None:
    here, there = Place("s3://lake/repo", "minio-a:9000"), Place("s3://lake/repo", "minio-b:9000")
    assert not here.overlaps(there)
    assert here.overlaps(Place("s3://lake", "minio-a:9000")) and Place("s3://lake", "minio-a:9000").overlaps(here)
    assert not here.overlaps(Place("s3://lake/repository", "minio-a:9000"))


def test_a_place_in_a_store_that_nobody_knows_may_be_anywhere() -> None:
    nowhere = Place("s3://lake", None)
    assert nowhere.overlaps(Place("s3://lake/repo", "minio")) and Place("s3://lake/repo", AWS).overlaps(nowhere)
    assert not nowhere.overlaps(Place("s3://other", None))


def test_addresses_overlap_by_folders_not_by_letters() -> None:
    assert inside("s3://b/x/y", "s3://b/x/") and overlap("s3://b", "s3://b/x")
    assert not overlap("s3://b/x", "s3://b/xy")
