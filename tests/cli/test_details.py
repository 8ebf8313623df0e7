"""Commands that look closer and that help a mirror on, against the application itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from installations.models import Contact
from mirrors.models import Blocker, Commit, Mirror, MirrorBranch, MirrorCommit, Run, Waiver
from rbac.models import User
from tests.cli.speaking import API, StandIn, Terminal
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db
EU = ("analytics-eu", "--repository", "analytics")


@pytest.fixture
def company(lm: Deployment) -> dict[str, Mirror]:
    return make_company(datetime.now(UTC))


@pytest.fixture
def olgas(terminal_of: Callable[[User], Terminal], owner: User) -> Terminal:
    """An administrator's terminal."""
    return terminal_of(owner)


def sha_of(message: str) -> str:
    return Commit.objects.get(message=message).sha


def said(done: Any) -> str:
    """What a command printed, in single spaces; it went well."""
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return " ".join(done.stdout.split())


def test_commits_are_listed_with_their_stages(olgas: Terminal, company: Any) -> None:
    told = said(olgas("mirror", "commits", *EU, "--branch", "main"))
    assert f"{sha_of('nightly orders load')[:8]} metadata" in told and "nightly orders load" in told
    assert "model 42" not in told and "None" not in told
    assert said(olgas("mirror", "commits", *EU, "--limit", "2")).endswith("There are more.")
    assert said(olgas("mirror", "commits", *EU, "--branch", "release-12", "--stage", "seen")) == "No commits match."


def test_a_commit_is_shown_with_its_steps_and_what_it_lacks(olgas: Terminal, company: Any) -> None:
    sha = sha_of("nightly orders load")
    told = said(olgas("mirror", "commit", "analytics-eu", sha[:10], "--repository", "analytics"))
    assert told.startswith(f"{sha}: metadata") and "Blocked by 3 problems" in told and "Waived no" in told
    assert "object orders/day=2026-11-20/part-00017.parquet 19.2 MB missing" in told, told
    assert f"Everything that keeps it back: lakemirror mirror blockers analytics-eu --commit {sha[:8]}" in told
    assert olgas.json("mirror", "commit", "analytics-eu", sha)["blockers_total"] == 3


def test_a_commit_is_shown_with_the_regions_that_do_not_answer(olgas: Terminal, company: Any) -> None:
    now = datetime.now(UTC)
    failing = {"asked_at": now, "failing_since": now - timedelta(seconds=48), "kind": "unreachable"}
    Contact.objects.update_or_create(region="us-east-1", service="lakefs", defaults=failing)
    told = said(olgas("mirror", "commit", "analytics-eu", sha_of("first load"), "--repository", "analytics"))
    assert "The lakeFS of us-east-1 has not answered for" in told
    assert "What is said of us-east-1 may be out of date." in told


def test_runs_are_listed(olgas: Terminal, company: Any) -> None:
    now = datetime.now(UTC)
    Run.objects.create(mirror=company["analytics-eu"], job="verify", started_at=now, ended_at=now, outcome="done")
    told = said(olgas("mirror", "runs", *EU))
    assert "check running" in told and "12 of 31" in told and "verify done" in told
    assert said(olgas("mirror", "runs", "models-eu")) == "Nothing has been validated yet."


def test_what_is_copied_now_is_shown_and_steered(olgas: Terminal, lm: Deployment) -> None:
    assert said(olgas("mirror", "copying", "lake-eu")).startswith("The stores copy the objects of this mirror")
    assert olgas("mirror", "copying", "lake-eu", "--pause").exit_code == 5
    Mirror.objects.update(object_replication="managed")
    assert said(olgas("mirror", "copying", "lake-eu")).startswith("Nothing is being copied. Limits 16 objects at once")
    assert said(olgas("mirror", "copying", "lake-eu", "--pause")).startswith("Copying is paused.")
    told = said(olgas("mirror", "copying", "lake-eu", "--workers", "4", "--bytes-per-second", "2000000"))
    assert "4 objects at once, 2.0 MB/s" in told or "4 objects at once, 1.9 MB/s" in told
    assert olgas("mirror", "copying", "lake-eu", "--resume", "--workers", "4").exit_code == 2
    mirror = Mirror.objects.get(name="lake-eu")
    assert (mirror.copying_paused, mirror.copy_workers, mirror.copy_bytes_per_second) == (True, 4, 2_000_000)


def test_lateness_is_told_beside_the_target(olgas: Terminal, company: Any) -> None:
    told = said(olgas("mirror", "lag", *EU))
    assert told.startswith("The target is 5 min.")
    assert "main Blocked 4 commits 14 min" in told
    assert "None" not in told


def test_what_would_be_lost_is_told_with_what_is_not_counted(olgas: Terminal, company: Any) -> None:
    told = said(olgas("mirror", "loss", *EU))
    assert told.startswith("Would be lost: ") and "Not counted: tags." in told and "main 4" in told
    assert "Nothing seen so far would be lost." in said(olgas("mirror", "loss", "models-eu"))
    assert "Not known yet" in said(olgas("mirror", "loss", "fresh-eu"))


@pytest.fixture
def never_sent(lm: Deployment) -> Deployment:
    lm.lake.commit(files={"a": b"1"})
    return lm


def test_what_was_never_replicated_is_counted(olgas: Terminal, never_sent: Deployment) -> None:
    told = said(olgas("mirror", "unreplicated", "lake-eu"))
    assert told.startswith("Not at the mirror: 3 of 3 objects of the source,") and "manifest" in told
    never_sent.arrive()
    told = said(olgas("mirror", "unreplicated", "lake-eu"))
    assert told == "Nothing is missing: 3 objects of the source checked."


def test_its_manifest_is_written_to_a_file_or_to_a_pipe(
    olgas: Terminal, never_sent: Deployment, tmp_path: Path
) -> None:
    done = olgas("mirror", "manifest", "lake-eu", "--no-versions")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 3)
    assert all(line.startswith("src,lake/") and line.count(",") == 1 for line in done.stdout.splitlines())
    place = tmp_path / "manifest.csv"
    assert "is complete" in olgas("mirror", "manifest", "lake-eu", "-o", str(place)).stderr
    assert [line.count(",") for line in place.read_text().splitlines()] == [2, 2, 2]
    assert list(tmp_path.iterdir()) == [place]


def test_a_manifest_that_is_refused_or_no_manifest_leaves_the_file_as_it_was(
    run: Terminal, server: StandIn, tmp_path: Path
) -> None:
    place = tmp_path / "manifest.csv"
    place.write_text("of yesterday")
    path = "/repositories/lake/mirrors/lake-eu/unreplicated"
    for answer, status, code in (({"message": "no"}, 403, 3), ({"objects": 1}, 200, 6), (b"<h1>", 502, 6)):
        server.says("GET", path, answer, status=status)
        assert run("mirror", "manifest", "lake-eu", "--repository", "lake", "-o", str(place)).exit_code == code
    assert place.read_text() == "of yesterday" and list(tmp_path.iterdir()) == [place]


def test_what_is_missing_is_looked_for_now(olgas: Terminal, company: Any) -> None:
    thing = Blocker.objects.get(path__endswith="part-00017.parquet")
    assert said(olgas("mirror", "retry", *EU, "--id", str(thing.pk))).startswith("checking 1 problem")
    assert said(olgas("mirror", "retry", *EU, "--reason", "missing")).startswith("checking 3 problem")
    assert said(olgas("mirror", "retry", *EU, "--all")).startswith("checking 3 problem")
    with mock.patch("deployment.wiring.clients.require_writable"):
        assert said(olgas("mirror", "bring", *EU, "--id", str(thing.pk))).startswith("copying 1 object now")
        assert said(olgas("mirror", "bring", *EU, "--all")).startswith("copying ")
    told = "LakeMirror copies what is missing (3 objects left): asked for by olga"
    assert told in said(olgas("mirror", "copying", *EU)) and told in said(olgas("mirror", "show", *EU))
    assert "; ends when it is all there, at the latest 20" in said(olgas("mirror", "copying", *EU))
    assert olgas("mirror", "bring", *EU, "--stop", "--all").exit_code == 2
    assert said(olgas("mirror", "bring", *EU, "--stop")) == "copying is stopped: 3 objects are left to the stores"
    assert "asked for" not in said(olgas("mirror", "show", *EU)) + said(olgas("mirror", "copying", *EU))
    assert Blocker.objects.get(pk=thing.pk).look_at < thing.look_at


@pytest.mark.parametrize("given", [(), ("--all", "--reason", "missing"), ("--id", "1", "--all")])
def test_a_retry_is_of_one_sort(olgas: Terminal, company: Any, given: tuple[str, ...]) -> None:
    done = olgas("mirror", "retry", *EU, *given)
    assert (done.exit_code, "give one of --id, --reason and --all" in done.stderr) == (2, True)


def test_a_repair_is_planned_and_run(olgas: Terminal, company: Any) -> None:
    sha = sha_of("nightly orders load")
    plan = said(olgas("mirror", "repair", "analytics-eu", sha[:8], "--dry-run"))
    assert "Awaited 3 objects have not reached eu-west-1 (57.5 MB)" in plan
    assert "A run takes 3 requests to the destination" in plan
    assert "LakeMirror can copy these objects itself, once: lakemirror mirror bring analytics-eu --all" in plan
    assert not MirrorCommit.objects.filter(urgency__gt=0).exists()
    assert said(olgas("mirror", "repair", "analytics-eu", sha[:8])).startswith("checking 3 problem")
    assert MirrorCommit.objects.filter(urgency__gt=0, commit__sha=sha).exists()
    there = said(olgas("mirror", "repair", "analytics-eu", sha_of("f5"), "--dry-run"))
    assert there == f"Nothing is known to be missing of {sha_of('f5')[:8]}."


def test_a_branch_or_a_commit_goes_first(olgas: Terminal, company: Any) -> None:
    assert said(olgas("mirror", "prioritise", *EU, "--branch", "main")) == f"{sha_of('returns')[:8]} prioritised."
    there = said(olgas("mirror", "prioritise", *EU, "--commit", sha_of("f5")))
    assert there == f"{sha_of('f5')[:8]} already complete."
    both = olgas("mirror", "prioritise", *EU, "--commit", sha_of("f5"), "--branch", "main")
    assert (both.exit_code, "give one of --commit and --branch" in both.stderr) == (2, True)


def test_uncommitted_changes_are_undone(olgas: Terminal, company: Any) -> None:
    assert said(olgas("mirror", "reset-branch", "lab-eu", "trial"))
    assert MirrorBranch.objects.get(mirror=company["lab-eu"], name="trial").reset_asked


def test_commits_are_waived_listed_and_the_waiver_withdrawn(olgas: Terminal, company: Any) -> None:
    sha = sha_of("nightly orders load")
    assert said(olgas("mirror", "waivers", *EU)) == "No waivers."
    given = said(olgas("mirror", "waive", "analytics-eu", sha, "--reason", "the disk is gone"))
    number = Waiver.objects.get().pk
    assert given == f"Waiver {number} of 1 commit: nothing waits for them any more."
    listed = said(olgas("mirror", "waivers", *EU))
    assert f"{number} {sha[:8]} olga" in listed and "the disk is gone" in listed
    assert "Waived by olga: the disk is gone" in said(olgas("mirror", "commit", "analytics-eu", sha))
    done = olgas("mirror", "withdraw", "analytics-eu", str(number))
    assert said(done) == f"waiver {number} is withdrawn; no branch is moved back"
    assert not Waiver.objects.exists()
    assert olgas("mirror", "withdraw", "analytics-eu", str(number)).exit_code == 4
    assert olgas("mirror", "waive", "analytics-eu", sha).exit_code == 2


def test_blockers_may_be_of_a_kind_and_below_a_prefix(server: StandIn, run: Terminal) -> None:
    run("mirror", "blockers", "a", "--repository", "b", "--kind", "range", "--prefix", "x/")
    assert server.asked[0].path == f"{API}/repositories/b/mirrors/a/blockers"
    assert server.asked[0].query == {"group_by": "object", "kind": "range", "prefix": "x/"}


def test_an_object_that_several_commits_hold_is_listed_once(olgas: Terminal, company: Any) -> None:
    thing = Blocker.objects.get(path__endswith="part-00017.parquet")
    others = [Blocker(**{**row_of(thing), "holder_id": f"{number:02x}" * 32}) for number in range(12)]
    Blocker.objects.bulk_create(others)
    done = olgas("mirror", "blockers", *EU)
    assert (done.exit_code, done.stdout.count(thing.path)) == (1, 1)
    assert done.stdout.startswith("3 problems: missing or damaged.\n") and "1 commit " in done.stdout
    everything = json.loads(olgas("mirror", "blockers", *EU, "--json").stdout)["results"]
    assert sum(row["path"] == thing.path for row in everything) == 13


def row_of(thing: Blocker) -> dict[str, Any]:
    """Its columns, without its key."""
    return {field.attname: getattr(thing, field.attname) for field in Blocker._meta.fields if not field.primary_key}


def test_an_object_is_located(olgas: Terminal, lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work()
    told = said(olgas("object", "locate", "lake", "main", "a", "--prefer", "eu-west-1"))
    assert told.startswith("Readable in eu-west-1. Address s3://dst/lake/data/") and "Size 1 byte" in told
    done = olgas("object", "locate", "lake", "main", "a", "--address-only", "--seconds", "60")
    assert done.stdout.startswith("http://store/src/lake/data/") and "X-Amz-Expires=60&" in done.stdout
    assert olgas("object", "locate", "lake", "main", "nowhere").exit_code == 4
    assert olgas("object", "locate", "lake", "main", "a", "--seconds", "5").exit_code == 2
