"""What is sealed stands in a file that can be verified, and the chain goes on; wherever it ends, nothing is lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit import chain, db_triggers, rounds
from audit import seal as sealing
from audit import verify as verifying
from audit.models import AuditCheckpoint, AuditEvent
from tests.audit.test_chain import add, rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def old(db: None) -> list[dict[str, Any]]:
    """Six events of long ago, chained, and four of now."""
    add(10)
    long_ago = datetime(2025, 1, 1, tzinfo=UTC)
    for place, pk in enumerate(AuditEvent.objects.order_by("pk").values_list("pk", flat=True)[:6]):
        rows(pk=pk).update(at=long_ago + timedelta(days=place))
    chain.append_waiting()
    return list(chain.rows_after(0, 6))


def seal(out: Path, before: str = "2026-01-01") -> str:
    told = StringIO()
    call_command("audit", "seal", "--before", before, "--out", str(out), stdout=told)
    return told.getvalue()


def verify(*words: str) -> tuple[int, str]:
    told = StringIO()
    try:
        call_command("audit", "verify", *words, stdout=told, stderr=told)
    except SystemExit as ended:
        return int(ended.code or 0), told.getvalue()
    return 0, told.getvalue()


def test_old_events_go_into_a_file_and_the_chain_goes_on(old: list[dict[str, Any]], tmp_path: Path) -> None:
    db_triggers.install()
    try:
        told = seal(tmp_path / "audit.jsonl")
    finally:
        db_triggers.remove()
    assert f"events 1 to 6 are in {tmp_path / 'audit.jsonl'}\nhead 6:{old[5]['digest']}" in told
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()[1:]]
    assert [line["digest"] for line in lines] == [row["digest"] for row in old]
    assert not AuditEvent.objects.filter(number__lte=6).exists()
    chain.append_waiting()
    about = AuditEvent.objects.latest("pk")
    assert (about.number, about.action, about.after["last"]) == (11, "auth:SealAuditEvents", 6)
    assert verify()[0] == 0 and "events up to 6 are sealed" in verify()[1]
    assert verify(str(tmp_path / "audit.jsonl"))[0] == 0
    assert verify("--head", f"6:{old[5]['digest']}")[0] == 0 and verify("--head", f"6:{'0' * 64}")[0] == 1
    assert "no event of the chain is older" in seal(tmp_path / "none.jsonl")
    assert "events 7 to 11 are in" in seal(tmp_path / "second.jsonl", before="2100-01-01")
    assert verify()[0] == 0 and verify(str(tmp_path / "second.jsonl"))[0] == 0


def test_a_sealed_file_that_was_changed_is_known(old: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    seal(file)
    whole = file.read_text()
    lines = whole.splitlines(keepends=True)
    for text, told in (
        (whole.replace('"arn:3"', '"arn:x"'), "event 4 (row"),
        ("".join(lines[:3] + lines[4:]), "event 3 is missing"),
        ("".join(lines[:-2]), "event 5 is missing: the file goes up to 6"),
        (whole.replace(lines[2], "{}\n"), "event 2 can't be read"),
        (whole.replace('"last": 6', '"last": 6 '), "its bytes are not those"),
    ):
        file.write_text(text)
        code, said = verify(str(file))
        assert code == 1 and told in said
    file.write_text(whole)
    rows(number=9).update(reason="x")
    assert verify(str(file))[0] == 0 and verify()[0] == 1
    with pytest.raises(CommandError, match="the chain is broken: event 9"):
        seal(tmp_path / "more.jsonl", before="2100-01-01")


@pytest.mark.parametrize("step", ["verify_file", "_sync_folder", "_checkpoint", "remove_sealed"])
def test_a_crash_between_any_two_steps_loses_nothing(
    old: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    calls = []

    def crash(*args: Any, **kwargs: Any) -> None:
        calls.append(step)
        if step != "remove_sealed" or len(calls) > 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(sealing, step, crash)
        seal(tmp_path / "first.jsonl")
    assert not verifying.verify().wrong
    sealed = AuditCheckpoint.objects.exists()
    assert sealed == (step == "remove_sealed")
    assert [row["id"] for row in chain.rows_after(0, 6)] == [row["id"] for row in old]
    if sealed:
        rounds.look_round()
    else:
        seal(tmp_path / "second.jsonl")
    assert not AuditEvent.objects.filter(number__lte=6).exists() and not verifying.verify().wrong
    file = Path(AuditCheckpoint.objects.get().file)
    assert verify(str(file))[0] == 0 and len(file.read_text().splitlines()) == 7


def test_bad_input_is_told(old: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    for out, before, told in (
        (tmp_path / "there", "2026-01-01", "exists already"),
        (tmp_path / "no" / "folder", "2026-01-01", "can't be written: No such file"),
        (tmp_path / "x", "yesterday", "'yesterday' is not a time"),
    ):
        with pytest.raises(CommandError, match=told):
            seal(out, before)
    for words, told in (
        ([str(tmp_path / "none")], "there is no file"),
        ([str(tmp_path / "there")], "is not a file of sealed events"),
        (["--head", "7"], "use NUMBER:DIGEST"),
    ):
        with pytest.raises(CommandError, match=told):
            verify(*words)
    assert AuditEvent.objects.filter(number__lte=6).count() == 6
