"""Mirrors that follow some branches only: what is copied and checked for them, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from unittest import mock

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from core.errors import Unreachable
from core.mirroring.branch_selection import OnUnselect
from core.mirroring.states import State
from jobs.models import Duty
from mirrors.models import (
    Blocker,
    Commit,
    Coverage,
    Mirror,
    MirrorBranch,
    MirrorCommit,
    Promotion,
    Repository,
    SourceBranch,
)
from mirrors.queries.certificates import parse_descriptor
from mirrors.status.branch_commits import branch_commits
from mirrors.status.mirror import BranchStatus, mirror_status
from mirrors.transitions.selection import reselect
from tests.api import Api
from tests.mirrors.harness import NAMESPACE, Deployment, state_of
from tests.mirrors.promise import age, lose

pytestmark = pytest.mark.django_db(transaction=True)


def select(
    include: Sequence[str] = ("*",), exclude: Sequence[str] = (), on_unselect: OnUnselect = OnUnselect.KEEP
) -> None:
    """Select the mirror's branches anew."""
    old = Mirror.objects.get()
    new = copy(old)
    new.selected = {"include": list(include), "exclude": list(exclude)}
    new.save(update_fields=["selected"])
    reselect(old, new, on_unselect)


def mirrored(lm: Deployment, branch: str = "main", **files: bytes) -> str:
    """A commit of the source, with everything of it at the mirror's region."""
    commit = commit_only(lm, branch, **files)
    lm.work(1)
    return commit


def commit_only(lm: Deployment, branch: str = "main", **files: bytes) -> str:
    branches = lm.lake.repository.branches
    branches.setdefault(branch, branches["main"])
    commit = lm.lake.commit(branch, files)
    lm.arrive()
    return commit


def rows() -> set[str]:
    """The commits that the mirror has rows for."""
    return set(MirrorCommit.objects.values_list("commit__sha", flat=True))


def heads(lm: Deployment) -> dict[str, str]:
    return dict(lm.eu.repositories["lake-eu"].branches)


def read(name: str) -> BranchStatus:
    return next(branch for branch in mirror_status(Mirror.objects.get()).branches if branch.name == name)


def history(branch: str) -> list[tuple[str, str, str]]:
    moves = Promotion.objects.filter(branch=branch).order_by("pk")
    return list(moves.values_list("why", "from_commit", "to_commit"))


def whole_histories(lm: Deployment) -> None:
    """No row of the mirror stands without those of its parents."""
    known = rows()
    for sha, parents in Commit.objects.filter(sha__in=known).values_list("sha", "parents"):
        assert set(parents) <= known, sha


# --- what is copied and checked -------------------------------------------------------------------------------------


def test_only_what_selected_branches_lead_to_is_copied_and_checked(lm: Deployment) -> None:
    select(["release-*"])
    a = mirrored(lm, a=b"1")
    r = mirrored(lm, "release-1", r=b"1")
    x = commit_only(lm, "tmp/x", x=b"1")
    lm.work(2)
    assert heads(lm) == {"main": a, "release-1": r}
    assert x not in rows()
    assert x not in lm.eu.repositories["lake-eu"].commits
    assert SourceBranch.objects.get(name="tmp/x").head == x
    assert [branch.name for branch in mirror_status(Mirror.objects.get()).branches] == ["main", "release-1"]
    assert mirror_status(Mirror.objects.get()).left_out == 1


def test_29_what_a_branch_lacks_that_is_not_selected_blocks_nothing(lm: Deployment) -> None:
    select(exclude=["tmp"])
    mirrored(lm, a=b"1")
    x = commit_only(lm, "tmp", x=b"1")
    lm.arrive(lm.lake.address_of(x, "x"))
    b = lm.lake.commit(files={"b": b"1"})
    lm.arrive(lm.lake.address_of(x, "x"))
    lm.work(2)
    assert lm.head() == b
    assert not Blocker.objects.exists()
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE


def test_9_what_was_merged_from_a_branch_that_is_not_selected_is_history(lm: Deployment) -> None:
    select(exclude=["feature"])
    a = mirrored(lm, a=b"1")
    f = commit_only(lm, "feature", f=b"1")
    g = commit_only(lm, "feature", g=b"1")
    lm.work(2)
    assert not {f, g} & rows()
    merged = lm.lake.merge("feature")
    held = lm.lake.address_of(f, "f")
    lm.arrive(held)
    lm.work(2)
    assert heads(lm) == {"main": a}
    assert {f, g, merged} <= rows()
    assert [blocker.address for blocker in read("main").blockers] == [held]
    lm.arrive()
    lm.work(2)
    assert heads(lm) == {"main": merged}
    assert not lm.torn()


def test_mirrors_of_one_source_follow_branches_of_their_own_by_one_look(lm: Deployment) -> None:
    lm.work(2)
    first = Mirror.objects.get()
    second = Mirror.objects.create(
        name="lake-all", source=first.source, region="eu-west-1", storage_namespace="s3://dst/all", state="active"
    )
    select_of = Mirror.objects.filter(pk=first.pk)
    select_of.update(selected={"include": [], "exclude": []}, follows_all=False)
    Mirror.objects.filter(pk=second.pk).update(follows_all=True)
    x = commit_only(lm, "dev", x=b"1")
    lm.us.calls.clear()
    lm.run(Duty.objects.get(kind="sense").pk)
    assert lm.us.calls.count("log_commits") == 1
    assert list(MirrorCommit.objects.filter(commit__sha=x).values_list("mirror__name", flat=True)) == ["lake-all"]


def test_a_branch_that_is_selected_later_gets_its_history_at_once(lm: Deployment) -> None:
    select([])
    mirrored(lm, a=b"1")
    commits = [commit_only(lm, "dev", **{f"d{n}": b"1"}) for n in range(5)]
    lm.work(2)
    assert not set(commits) & rows()
    select(["dev"])
    lm.us.failing["list_branches"] = AssertionError("the source is not asked")  # type: ignore[assignment]
    for kind in ("manage", "copy", "validate", "promote"):
        lm.run(Duty.objects.get(kind=kind).pk)
    assert heads(lm)["dev"] == commits[-1]
    assert set(commits) <= rows()
    whole_histories(lm)


def test_a_long_history_is_selected_in_few_queries(lm: Deployment) -> None:
    select([])
    lm.work(2)
    mirror = Mirror.objects.get()
    main = Commit.objects.get(repository=mirror.source)
    made = [
        Commit(
            repository=mirror.source,
            sha=f"{n:064x}",
            parents=[f"{n - 2:064x}" if n > 1 else main.sha],
            creation_date=1,
            generation=n,
            version=1,
            seen_at=datetime.now(UTC),
        )
        for n in range(6_000)
    ]
    Commit.objects.bulk_create(made, batch_size=1000)
    SourceBranch.objects.create(
        repository=mirror.source, name="dev", head=made[-1].sha, position=0, changed_at=datetime.now(UTC)
    )
    select(["dev"])
    with CaptureQueriesContext(connection) as queries:
        lm.run(Duty.objects.get(kind="manage").pk)
    assert MirrorCommit.objects.count() == 3_001
    assert sum(query["sql"].startswith("SELECT") for query in queries) < 65
    whole_histories(lm)
    with CaptureQueriesContext(connection) as queries:
        lm.run(Duty.objects.get(kind="manage").pk)
    assert len(queries) < 25


def test_another_selection_while_a_look_goes_on_leaves_no_gap(lm: Deployment) -> None:
    """Following everything begins only when everything that was sensed before has its row."""
    select(["dev"])
    mirrored(lm, "dev", a=b"1")
    x = mirrored(lm, "tmp", x=b"1")
    select()
    y = commit_only(lm, "tmp", y=b"1")
    lm.run(Duty.objects.get(kind="sense").pk)
    whole_histories(lm)
    lm.work(2)
    assert Mirror.objects.get().follows_all
    assert heads(lm)["tmp"] == y
    assert x in rows()


# --- unselected: kept -----------------------------------------------------------------------------------------------


def test_29_an_unselected_branch_stays_where_it_is_and_goes_on_from_there(lm: Deployment) -> None:
    a = mirrored(lm, a=b"1")
    c = mirrored(lm, "dev", c=b"1")
    select(exclude=["dev"])
    lm.lake.commit("dev", {"d": b"1"})
    d = lm.lake.commit("dev", {"e": b"1"})
    lm.arrive()
    lm.work(2)
    assert heads(lm) == {"main": a, "dev": c}
    assert not {d} & rows()
    assert (read("dev").state, read("dev").reason_code, read("dev").pending) == (State.UNSELECTED, "not_selected", 0)
    assert "not selected for this mirror and stays where it is" in read("dev").sentence
    reading = mirror_status(Mirror.objects.get())
    assert (reading.state, reading.staying) == (State.UP_TO_DATE, 1)
    assert "1 branch is kept, but not mirrored" in reading.sentence
    opened = branch_commits(Mirror.objects.get(), "dev", datetime.now(UTC))
    assert ([one.commit_id for one in opened.mirrored][:1], opened.pending) == ([c], [])
    select()
    lm.work(2)
    assert heads(lm)["dev"] == d
    assert history("dev")[-1] == ("advanced", c, d)
    whole_histories(lm)


def test_a_kept_branch_stays_although_the_source_moves_or_deletes_its_own(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    c = mirrored(lm, "dev", c=b"1")
    select(exclude=["dev"])
    lm.work(2)
    lm.lake.repository.branches["dev"] = lm.lake.repository.branches["main"]
    lm.work(2)
    assert heads(lm)["dev"] == c
    del lm.lake.repository.branches["dev"]
    lm.work(1)
    SourceBranch.objects.filter(name="dev").update(missing_since=datetime.now(UTC) - timedelta(seconds=61))
    lm.work(2)
    assert SourceBranch.objects.get(name="dev").gone_at is not None
    assert heads(lm)["dev"] == c
    assert read("dev").state is State.UNSELECTED
    select()
    lm.work(2)
    assert "dev" not in heads(lm)
    assert history("dev")[-1] == ("deleted-at-source", c, "")


def test_what_somebody_does_to_a_kept_branch_is_noted_and_undone(lm: Deployment) -> None:
    a = mirrored(lm, a=b"1")
    c = mirrored(lm, "dev", c=b"1")
    select(exclude=["dev"])
    lm.lake.commit("dev", {"d": b"1"})
    lm.work(2)
    there = lm.eu.repositories["lake-eu"].branches
    there["dev"] = a
    lm.work(2)
    assert heads(lm)["dev"] == c
    del there["dev"]
    lm.work(2)
    assert heads(lm)["dev"] == c
    undone = ["moved-by-somebody", "put-back", "gone-at-the-mirror", "put-back"]
    assert [why for why, _, _ in history("dev")[1:]] == undone


def test_a_kept_branch_s_objects_are_checked_again(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    c = mirrored(lm, "dev", c=b"1")
    select(exclude=["dev"])
    lm.work(2)
    assert c in rows()
    assert state_of(c).data == "complete"
    lost = f"{NAMESPACE}/{lm.lake.address_of(c, 'c')}"
    content = lm.eu_store.objects.pop(lost)
    Coverage.objects.update(verify_at=datetime.now(UTC) - timedelta(seconds=1))
    lm.work(2)
    assert mirror_status(Mirror.objects.get()).state is State.DAMAGED
    assert heads(lm)["dev"] == c
    lm.eu_store.objects[lost] = content
    lm.work(2)
    assert mirror_status(Mirror.objects.get()).state is State.UP_TO_DATE


def test_what_only_an_unselected_branch_waits_for_is_waited_for_no_more(lm: Deployment) -> None:
    a = mirrored(lm, a=b"1")
    b = lm.lake.commit(files={"b": b"1"})
    x = commit_only(lm, "dev", x=b"1")
    lm.arrive(lm.lake.address_of(x, "x"), lm.lake.address_of(b, "b"))
    lm.work(2)
    assert Blocker.objects.values("address").distinct().count() == 2
    select(exclude=["dev"])
    lm.work(2)
    assert {blocker.address for blocker in Blocker.objects.all()} == {lm.lake.address_of(b, "b")}
    assert (x in rows(), b in rows(), a in rows()) == (False, True, True)
    assert heads(lm) == {"main": a}
    lm.arrive()
    lm.work(2)
    assert heads(lm) == {"main": b}
    select()
    lm.work(2)
    assert heads(lm) == {"main": b, "dev": x}
    whole_histories(lm)


def test_candidates_that_the_source_has_left_are_not_dropped(lm: Deployment) -> None:
    """Scenario 14: C was pointed to, then X, of another history. C is complete first, and is promoted."""
    a = mirrored(lm, a=b"1")
    c = lm.lake.commit(files={"c": b"1"})
    lm.arrive(lm.lake.address_of(c, "c"))
    lm.work(1)
    lm.lake.repository.branches["main"] = a
    x = lm.lake.commit(files={"x": b"1"})
    lm.arrive(lm.lake.address_of(c, "c"), lm.lake.address_of(x, "x"))
    lm.work(1)
    select(["main"])
    lm.work(2)
    assert {c, x} <= rows()
    lm.arrive(lm.lake.address_of(x, "x"))
    lm.work(2)
    assert heads(lm) == {"main": c}


# --- unselected: deleted --------------------------------------------------------------------------------------------


def test_29_an_unselected_branch_is_deleted_at_the_mirror_when_that_was_asked(lm: Deployment) -> None:
    a = mirrored(lm, a=b"1")
    c = mirrored(lm, "dev", c=b"1")
    select(exclude=["dev"], on_unselect=OnUnselect.DELETE)
    assert "being deleted in eu-west-1" in read("dev").sentence
    lm.work(2)
    assert heads(lm) == {"main": a}
    assert history("dev")[-1] == ("no-longer-selected", c, "")
    assert c not in rows()
    assert not MirrorBranch.objects.filter(name="dev").exists()
    assert SourceBranch.objects.get(name="dev").gone_at is None
    select()
    lm.work(2)
    assert heads(lm)["dev"] == c


def test_neither_the_default_branch_nor_one_that_is_not_ours_is_deleted(lm: Deployment) -> None:
    a = mirrored(lm, a=b"1")
    lm.lake.repository.branches["theirs"] = a
    there = lm.eu.repositories["lake-eu"].branches
    select(exclude=["*"])
    there["theirs"] = lm.lake.repository.commits[a].parents[0]
    lm.work(2)
    assert MirrorBranch.objects.get(name="theirs").stray
    select()
    select(exclude=["*"], on_unselect=OnUnselect.DELETE)
    lm.work(2)
    assert heads(lm) == {"main": a, "theirs": lm.lake.repository.commits[a].parents[0]}
    assert read("theirs").state is State.TAMPERED


def test_only_what_this_change_unselects_is_deleted(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    mirrored(lm, "dev", c=b"1")
    mirrored(lm, "tmp", d=b"1")
    select(exclude=["dev"])
    select(exclude=["dev", "tmp"], on_unselect=OnUnselect.DELETE)
    lm.work(2)
    assert heads(lm).keys() == {"main", "dev"}


def test_a_branch_that_is_selected_again_in_time_is_not_deleted(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    c = mirrored(lm, "dev", c=b"1")
    select(exclude=["dev"], on_unselect=OnUnselect.DELETE)
    select()
    lm.work(2)
    assert heads(lm)["dev"] == c
    assert len(history("dev")) == 1
    select(exclude=["dev"])
    lm.work(2)
    assert heads(lm)["dev"] == c


def test_nothing_is_deleted_at_a_repository_that_became_writable(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    c = mirrored(lm, "dev", c=b"1")
    repository = lm.eu.repositories["lake-eu"]
    repository.info = replace(repository.info, read_only=False)
    select(exclude=["dev"], on_unselect=OnUnselect.DELETE)
    lm.run(Duty.objects.get(kind="promote").pk)
    assert heads(lm)["dev"] == c
    assert Mirror.objects.get().state == Mirror.State.STOPPED


def test_a_deletion_whose_answer_was_lost_blames_nobody(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    c = mirrored(lm, "dev", c=b"1")
    select(exclude=["dev"], on_unselect=OnUnselect.DELETE)
    del lm.eu.repositories["lake-eu"].branches["dev"]  # by a worker that died before it wrote that down
    lm.work(2)
    assert not MirrorBranch.objects.filter(name="dev").exists()
    assert [why for why, _, _ in history("dev")] == ["first-promotion"]
    assert c


# --- chosen and changed ---------------------------------------------------------------------------------------------

MIRRORS = "/service/replication/v1/repositories/lake/mirrors"
MIRROR = f"{MIRRORS}/lake-eu"


def test_the_branches_of_a_mirror_are_chosen_when_it_is_made(api: Api, lm: Deployment) -> None:
    Mirror.objects.all().delete()
    body = {"name": "lake-eu", "region": "eu-west-1", "storage_namespace": NAMESPACE}
    status, made = api.call("POST", MIRRORS, body | {"branches": {"include": ["release-*"]}})
    assert (status, made["branches"]) == (201, [])
    assert made["selected_branches"] == {"include": ["release-*"], "exclude": [], "left_out": 0}
    a, r = mirrored(lm, a=b"1"), mirrored(lm, "release-1", r=b"1")
    mirrored(lm, "dev", d=b"1")
    assert heads(lm) == {"main": a, "release-1": r}
    shown = api.call("GET", MIRROR)[1]
    assert [branch["name"] for branch in shown["branches"]] == ["main", "release-1"]
    assert (shown["selected_branches"]["left_out"], shown["warnings"]) == (1, [])


def test_a_mirror_follows_every_branch_unless_told_otherwise(api: Api, lm: Deployment) -> None:
    lm.work(2)
    assert api.call("GET", MIRROR)[1]["selected_branches"] == {"include": ["*"], "exclude": [], "left_out": 0}


def test_29_branches_are_unselected_and_selected_again_by_patch(api: Api, lm: Deployment) -> None:
    a = mirrored(lm, a=b"1")
    mirrored(lm, "dev", d=b"1")
    status, shown = api.call("PATCH", MIRROR, {"branches": {"exclude": ["dev", "tmp-*"]}})
    assert status == 200
    assert shown["selected_branches"] == {"include": ["*"], "exclude": ["dev", "tmp-*"], "left_out": 0}
    assert shown["warnings"] == ["exclude: 'tmp-*' matches no branch now"]
    dev = next(branch for branch in shown["branches"] if branch["name"] == "dev")
    assert (dev["status"], dev["reason_code"]) == ("Not mirrored", "not_selected")
    status, _ = api.call("PATCH", MIRROR, {"branches": {"exclude": ["dev"]}, "on_unselect": "delete"})
    lm.work(2)
    assert heads(lm).keys() == {"main", "dev"}
    api.call("PATCH", MIRROR, {"branches": {"exclude": []}})
    api.call("PATCH", MIRROR, {"branches": {"include": []}, "on_unselect": "delete"})
    lm.work(2)
    assert heads(lm) == {"main": a}
    told = AuditEvent.objects.filter(action="fs:MirrorRepository").order_by("-pk").values_list("after", flat=True)
    assert told[0] == {"mirror": "lake-eu", "selected": {"include": [], "exclude": []}}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"branches": ["main"]}, "branches"),
        ({"branches": {"include": "main"}}, "branches"),
        ({"branches": {"include": [1]}}, "branches"),
        ({"branches": {"only": ["main"]}}, "branches"),
        ({"branches": {"exclude": [""]}}, "branches"),
        ({"branches": {"exclude": ["main"]}}, "main"),
        ({"branches": None}, "branches"),
        ({"on_unselect": "delete"}, "on_unselect"),
        ({"branches": {}, "on_unselect": "forget"}, "on_unselect"),
    ],
)
def test_a_wrong_selection_is_refused_by_name(api: Api, lm: Deployment, body: dict[str, Any], field: str) -> None:
    status, answer = api.call("PATCH", MIRROR, body)
    assert status == 400
    assert field in answer["message"]
    assert Mirror.objects.get().selection.everything


def test_on_unselect_is_no_setting_of_a_new_mirror(api: Api, lm: Deployment) -> None:
    body = {"name": "other", "region": "eu-west-1", "storage_namespace": "s3://dst/o", "on_unselect": "keep"}
    assert api.call("POST", MIRRORS, body)[0] == 400


def test_the_selection_is_told_to_the_destination_and_made_again_from_it(lm: Deployment) -> None:
    mirrored(lm, a=b"1")
    c = mirrored(lm, "dev", d=b"1")
    select(["release-*"])
    lm.work(2)
    told = parse_descriptor(lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"])
    assert told.selected == {"include": ["release-*"], "exclude": []}
    for model in (Duty, Mirror, Repository):
        model.objects.all().delete()
    call_command("rebuild", "--from-destination", stdout=StringIO())
    assert Mirror.objects.get().selected == {"include": ["release-*"], "exclude": []}
    lm.lake.commit("dev", {"e": b"1"})
    lm.arrive()
    lm.work(2)
    assert heads(lm)["dev"] == c
    assert read("dev").state is State.UNSELECTED
    select()
    lm.work(2)
    assert heads(lm)["dev"] == lm.lake.repository.branches["dev"]


def test_the_form_of_a_new_mirror_asks_which_branches(lm: Deployment, olga: Client) -> None:
    Mirror.objects.all().delete()
    typed = {"source_repository": "lake", "source_region": "us-east-1", "name": "lake-eu", "region": "eu-west-1"}
    typed["storage_namespace"] = NAMESPACE
    refused = olga.post("/mirrors/new/", typed | {"exclude": "main"}).content.decode()
    assert "can&#x27;t be excluded" in refused
    chosen = {"include": " release-* \r\n\r\nhot-*", "exclude": "tmp-*\n", "anyway": "1"}
    olga.post("/mirrors/new/", typed | chosen)
    assert Mirror.objects.get().selected == {"include": ["release-*", "hot-*"], "exclude": ["tmp-*"]}
    mirrored(lm, "dev", d=b"1")
    page = olga.get("/mirrors/lake-eu/").content.decode()
    assert "<code>release-*</code> <code>hot-*</code> without <code>tmp-*</code>" in page
    assert "1 branch of the source left out" in page
    assert "matches no branch now" in page


# --- what becomes of a branch that is not where it was put, or was not noted ------------------------------------------


def test_187_where_a_branch_was_put_is_needed_although_somebody_has_moved_it(lm: Deployment) -> None:
    """Kept, unselected, damaged, and moved by somebody; then something else is selected."""
    first = mirrored(lm)
    put = mirrored(lm, "dev", a=b"1")
    select(["main"])
    lm.work(2)
    lose(lm, put, "a")
    age()
    lm.work(2)
    lm.eu.repositories["lake-eu"].branches["dev"] = first
    lm.work(2)
    assert heads(lm)["dev"] == first  # what is damaged is nothing to put it back to
    select(["main", "rel-*"])
    lm.work(2)
    assert put in rows()
    lm.eu_store.hidden.clear()
    lm.work(5)
    assert heads(lm)["dev"] == put


def test_187_and_is_looked_at_where_heads_alone_are(lm: Deployment) -> None:
    """The source has made the branch anew since, so that no candidate tells of it."""
    Mirror.objects.update(history="head")
    first = mirrored(lm)
    put = mirrored(lm, "dev", a=b"1")
    new = lm.lake.commit("dev", {"n": b"never arrives"})
    del lm.lake.repository.branches["dev"]
    Mirror.objects.update(paused=True)
    lm.run(Duty.objects.get(kind="sense").pk)
    SourceBranch.objects.filter(name="dev").update(missing_since=datetime.now(UTC) - timedelta(minutes=2))
    lm.run(Duty.objects.get(kind="sense").pk)
    lm.lake.repository.branches["dev"] = new
    lm.arrive(lm.lake.address_of(new, "n"))
    lm.work(2)
    Mirror.objects.update(paused=False)
    lm.work(2)
    assert heads(lm)["dev"] == put
    held = set(lm.eu_store.hidden)
    lose(lm, put, "a")
    age()
    lm.eu.repositories["lake-eu"].branches["dev"] = first
    lm.work(3)
    lm.eu_store.hidden = held
    lm.work(5)
    assert heads(lm)["dev"] == put


def made_and_not_noted(lm: Deployment, name: str, commit: str) -> None:
    """A worker dies between its call and its note."""
    lm.lake.repository.branches[name] = commit
    with mock.patch("mirroring.promote.branches.BranchRef.read_back", side_effect=Unreachable("it died")):
        lm.work(1)
    assert heads(lm)[name] == commit and not MirrorBranch.objects.filter(name=name).exists()


def test_190_a_branch_that_was_made_and_not_noted_is_deleted_too(lm: Deployment) -> None:
    first = mirrored(lm)
    made_and_not_noted(lm, "dev", first)
    select(["main"], on_unselect=OnUnselect.DELETE)
    lm.work(2)
    assert "dev" not in heads(lm) and not MirrorBranch.objects.filter(name="dev").exists()
    assert [p.why for p in Promotion.objects.filter(branch="dev").order_by("pk")] == [
        "first-promotion",
        "no-longer-selected",
    ]


def test_190_where_the_worker_dies_once_more_it_is_deleted_by_the_next_one(lm: Deployment) -> None:
    first = mirrored(lm)
    made_and_not_noted(lm, "dev", first)
    select(["main"], on_unselect=OnUnselect.DELETE)
    with mock.patch("mirroring.promote.branches.BranchRef.decide", side_effect=Unreachable("it died")):
        lm.work(1)
    assert MirrorBranch.objects.get(name="dev").delete_asked
    lm.work(2)
    assert "dev" not in heads(lm)


@pytest.mark.parametrize("again", [True, False])
def test_190_but_neither_one_that_is_selected_again_nor_somebodys_own(lm: Deployment, again: bool) -> None:
    first = mirrored(lm)
    second = mirrored(lm, a=b"1")
    made_and_not_noted(lm, "dev", second)
    select(["main"], on_unselect=OnUnselect.DELETE)
    if again:
        select()
    else:
        lm.eu.repositories["lake-eu"].branches["dev"] = first
    lm.work(2)
    assert heads(lm)["dev"] == (second if again else first)


def there(lm: Deployment) -> dict[str, str]:
    return lm.eu.repositories["lake-eu"].branches


def test_204_a_branch_that_somebody_makes_under_the_name_of_one_that_is_left_out_is_not_touched(
    lm: Deployment,
) -> None:
    """Where the source's branch is, and so at a whole commit; then they move it, and write to it."""
    Mirror.objects.update(repair_tampering="auto")
    select(["main"])
    first = mirrored(lm, a=b"1")
    lm.lake.repository.branches["dev"] = first
    lm.work(1)
    there(lm)["dev"] = first
    lm.work(2)
    second = mirrored(lm, a=b"2")
    there(lm)["dev"] = second
    lm.eu.repositories["lake-eu"].uncommitted.add("dev")
    lm.work(2)
    assert heads(lm)["dev"] == second and "dev" in lm.eu.repositories["lake-eu"].uncommitted
    assert MirrorBranch.objects.get(name="dev").stray


def test_204_one_of_our_own_that_is_back_is_no_strangers(lm: Deployment) -> None:
    """The destination is restored to before its deletion."""
    first = mirrored(lm, a=b"1")
    lm.lake.repository.branches["dev"] = first
    lm.work(2)
    select(["main"], on_unselect=OnUnselect.DELETE)
    lm.work(2)
    assert "dev" not in heads(lm)
    there(lm)["dev"] = first
    lm.work(2)
    assert not MirrorBranch.objects.get(name="dev").stray
    assert "moved-by-somebody" not in {move.why for move in Promotion.objects.filter(branch="dev")}


def test_211_nor_is_one_that_was_put_there_before_the_source_made_it_anew(lm: Deployment) -> None:
    """No candidate tells of that commit any more."""
    first = mirrored(lm, a=b"1")
    lm.lake.repository.branches["dev"] = first
    lm.work(2)
    backup = deepcopy(lm.eu.repositories["lake-eu"])
    del lm.lake.repository.branches["dev"]
    for _ in range(2):
        lm.work(1)
        SourceBranch.objects.exclude(missing_since=None).update(missing_since=F("missing_since") - timedelta(minutes=2))
    lm.lake.repository.branches["dev"] = mirrored(lm, a=b"2")
    lm.work(2)
    select(["main"], on_unselect=OnUnselect.DELETE)
    lm.work(2)
    lm.eu.repositories["lake-eu"] = backup
    lm.work(3)
    assert (heads(lm)["dev"], read("dev").state) == (first, State.UNSELECTED)
    assert "moved-by-somebody" not in {why for why, _, _ in history("dev")}
    select()
    lm.work(2)
    assert heads(lm)["dev"] == lm.lake.repository.branches["dev"]
