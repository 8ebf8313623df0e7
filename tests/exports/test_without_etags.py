"""Files of which the commit has no ETag: their address tells them apart, and a stamp at the destination."""

from __future__ import annotations

import pytest

from exports.models import Export, ExportRun, ExportVerification
from exports.services.exports import export_repair
from tests.exports.soak import Soak

pytestmark = pytest.mark.django_db


def commit(life: Soak, **files: bytes) -> None:
    life.lake.commit(files=files)
    for path in files:
        life.lake.describe(path, etag="")


def succeeded(life: Soak) -> ExportRun:
    life.rounds()
    assert (Export.objects.get().state, Export.objects.get().error) == ("exported-successfully", "")
    return ExportRun.objects.latest("pk")


def out(life: Soak, key: str) -> bytes | None:
    return life.s3.buckets["out"].get(f"latest/{key}")


def verified(life: Soak) -> ExportVerification:
    life.verify()
    life.rounds(2)
    return ExportVerification.objects.latest("pk")


@pytest.fixture(autouse=True)
def begun(life: Soak) -> None:
    """The watcher knows files by their ETags."""
    life.watcher.judge_success = lambda **_: None  # type: ignore[method-assign]
    commit(life, a=b"old", b=b"1")
    life.set()
    succeeded(life)


def test_other_content_of_the_same_size_is_exported(life: Soak) -> None:
    seen = verified(life)
    assert (seen.equal, seen.missing, seen.different) == (2, 0, 0)
    commit(life, a=b"new")
    assert (succeeded(life).copied, out(life, "a")) == (1, b"new")


def test_a_repair_copies_nothing_that_is_there(life: Soak) -> None:
    commit(life, a=b"new", **{"ü": b"2"})
    life.denied = "ü"
    life.rounds()
    life.denied = ""
    export_repair(actor=life.owner, export=Export.objects.get())
    run = succeeded(life)
    assert (run.copied, run.skipped, out(life, "a")) == (1, 1, b"new")


def test_what_the_branch_drops_goes_and_what_somebody_put_in_its_place_stays(life: Soak) -> None:
    life.s3.buckets["out"]["latest/b"] = b"2"
    life.lake.commit(files={"a": None, "b": None})
    run = succeeded(life)
    assert (out(life, "a"), out(life, "b"), run.kept_keys) == (None, b"2", ["b"])


def test_another_file_of_the_same_size_is_none_that_verify_proves(life: Soak) -> None:
    life.s3.buckets["out"]["latest/a"] = b"new"
    seen = verified(life)
    assert (seen.equal, seen.missing, seen.different) == (1, 0, 1)
