"""What a destination holds of its own: a descriptor, and a certificate for each branch."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command

from core.errors import Denied, Invalid, Unreachable
from graveler.__main__ import main as graveler
from jobs.models import Duty
from mirrors.models import Mirror, MirrorBranch
from mirrors.queries.certificates import describe, parse_descriptor, read_certificate
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db(transaction=True)

CERTIFICATES = f"{NAMESPACE}/_lakemirror/certificates"


def certificate(lm: Deployment, branch: str = "main") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lm.eu_store.objects[f"{CERTIFICATES}/{branch}.json"])
    return found


def promoted(lm: Deployment, **files: bytes) -> str:
    commit = lm.lake.commit(files=dict(files))
    lm.arrive()
    lm.work()
    assert lm.head() == commit
    return commit


def manage(lm: Deployment) -> Duty:
    duty = Duty.objects.get(kind="manage")
    lm.run(duty.pk)
    duty.refresh_from_db()
    return duty


def test_each_promotion_is_followed_by_a_certificate(lm: Deployment) -> None:
    commit = promoted(lm, a=b"1", b=b"22")
    told = certificate(lm)
    assert (told["commit"], told["branch"], told["ranges"], told["entries"], told["bytes"]) == (commit, "main", 1, 2, 3)
    assert (told["region"], told["storage_namespace"], told["depth"]) == ("eu-west-1", NAMESPACE, "etag")
    assert told["metarange"] == lm.lake.files_of(commit)[0]
    assert told["at"]
    assert told["ran_by"]
    later = promoted(lm, c=b"333")
    assert (certificate(lm)["commit"], certificate(lm)["entries"]) == (later, 3)


def test_the_digest_covers_the_facts_and_neither_time_nor_runner(lm: Deployment) -> None:
    commit = promoted(lm, a=b"1")
    told = certificate(lm)
    out = StringIO()
    call_command("certificate", "lake-eu", commit, stdout=out)
    printed = json.loads(out.getvalue())
    assert printed["digest"] == told["digest"]
    assert {key: told[key] for key in printed} == printed
    assert "at" not in printed
    assert promoted(lm, b=b"2")
    assert certificate(lm)["digest"] != told["digest"]


def test_the_bytes_at_the_destination_alone_give_the_same_digest(
    lm: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = promoted(lm, a=b"1", b=b"22", c=b"")
    told = certificate(lm)
    (tmp_path / "_lakefs").mkdir()
    for key in lm.lake.files_of(commit):
        (tmp_path / "_lakefs" / key).write_bytes(lm.eu_store.objects[f"{NAMESPACE}/_lakefs/{key}"])
    assert graveler(["certify", str(tmp_path), commit, told["metarange"]]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {name: told[name] for name in found}
    assert found["content_digest"] == told["content_digest"]


def test_a_certificate_of_an_earlier_version_has_no_digest_of_its_content(lm: Deployment) -> None:
    commit = promoted(lm, a=b"1")
    told = certificate(lm)
    del told["content_digest"]
    lm.eu_store.put(f"{CERTIFICATES}/main.json", json.dumps(told).encode())
    proof = read_certificate("eu-west-1", NAMESPACE, "main")
    assert proof is not None
    assert proof.commit == commit


def test_a_commit_that_is_not_validated_has_no_certificate(lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive(lm.lake.address_of(commit, "a"))
    lm.work()
    with pytest.raises(CommandError, match="not validated"):
        call_command("certificate", "lake-eu", commit)
    with pytest.raises(CommandError, match="no mirror 'other'"):
        call_command("certificate", "other", commit)
    with pytest.raises(CommandError, match="there is no known commit"):
        call_command("certificate", "lake-eu", "f" * 64)


def test_a_promotion_wakes_the_manager_and_does_not_write_itself(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    lm.lake.commit(files={"b": b"2"})
    lm.arrive()
    for kind in ("sense", "copy", "validate"):
        lm.run(Duty.objects.get(kind=kind).pk)
    with mock.patch.object(lm.eu_store, "put", side_effect=AssertionError("not here")):
        lm.run(Duty.objects.get(kind="promote").pk)
    woken = Duty.objects.get(kind="manage")
    assert woken.woken_at is not None
    assert MirrorBranch.objects.get().certified != MirrorBranch.objects.get().head
    manage(lm)
    assert MirrorBranch.objects.get().certified == lm.head()


@pytest.mark.parametrize("error", [Denied("403"), Unreachable("no answer")])
def test_a_store_that_refuses_certificates_holds_up_no_promotion(lm: Deployment, error: Exception) -> None:
    promoted(lm, a=b"1")
    with mock.patch.object(lm.eu_store, "put", side_effect=error):
        later = promoted(lm, b=b"2")
        assert manage(lm).failures > 0
        assert Mirror.objects.get().state == Mirror.State.ACTIVE
    assert certificate(lm)["commit"] != later
    assert manage(lm).failures == 0
    assert certificate(lm)["commit"] == later


def test_nothing_is_written_twice(lm: Deployment) -> None:
    promoted(lm, a=b"1")
    with mock.patch.object(lm.eu_store, "put", side_effect=AssertionError("nothing has changed")):
        lm.work()


def test_a_branch_name_can_not_lead_out_of_the_folder(lm: Deployment) -> None:
    lm.lake.repository.branches["a/../b"] = lm.lake.repository.branches["main"]
    promoted(lm, a=b"1")
    assert f"{CERTIFICATES}/a%2F..%2Fb.json" in lm.eu_store.objects


def test_a_certificate_is_read_back_only_where_it_was_made(lm: Deployment) -> None:
    commit = promoted(lm, a=b"1")
    proof = read_certificate("eu-west-1", NAMESPACE, "main")
    assert proof is not None
    assert proof.commit == commit
    assert read_certificate("eu-west-1", NAMESPACE, "dev") is None
    told = certificate(lm)
    lm.eu_store.put(f"{CERTIFICATES}/dev.json", json.dumps(told).encode())
    with pytest.raises(Invalid, match="another place"):
        read_certificate("eu-west-1", NAMESPACE, "dev")


@pytest.mark.parametrize(
    "change",
    [{"commit": "f" * 64}, {"entries": 7}, {"digest": ""}, {"content_digest": "f" * 64}, {"bytes": "1"}, {"at": "x"}],
)
def test_a_certificate_that_was_changed_proves_nothing(lm: Deployment, change: dict[str, Any]) -> None:
    promoted(lm, a=b"1")
    lm.eu_store.put(f"{CERTIFICATES}/main.json", json.dumps(certificate(lm) | change).encode())
    with pytest.raises(Invalid):
        read_certificate("eu-west-1", NAMESPACE, "main")


def test_the_descriptor_tells_all_that_the_mirrors_row_needs(lm: Deployment) -> None:
    lm.work(1)
    mirror = Mirror.objects.select_related("source").get()
    text = lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"]
    assert parse_descriptor(text) == describe(mirror)
    assert b"secret" not in text
    Mirror.objects.update(depth="size")
    lm.work(1)
    assert parse_descriptor(lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"]).depth == "size"


def test_a_descriptor_of_an_earlier_version_lacks_newer_settings(lm: Deployment) -> None:
    lm.work(1)
    body = json.loads(lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"])
    earlier = ("depth", "content_sample", "imported", "paused")
    body["settings"] = {name: body["settings"][name] for name in earlier}
    assert parse_descriptor(json.dumps(body).encode()) == describe(Mirror.objects.select_related("source").get())


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"source": 3}', b"\xff"])
def test_a_damaged_descriptor_is_told_so(text: bytes) -> None:
    with pytest.raises(Invalid, match=r"damaged|missing"):
        parse_descriptor(text)
