"""How the promise once was broken, and what is done now. The numbers are those of docs/promotion.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.core import serializers

from core.errors import Archived, Denied, LakeMirrorError, Unreachable
from core.mirroring.object_check import Depth
from core.mirroring.states import State
from deployment.wiring import check_jobs
from graveler.entries import AddressType
from jobs.models import Duty
from mirroring.validate import commits
from mirrors.models import (
    Blocker,
    Candidate,
    Commit,
    Coverage,
    MetarangeCoverage,
    Mirror,
    MirrorBranch,
    MirrorCommit,
    MoveIntent,
    Promotion,
    Repository,
    SourceBranch,
)
from mirrors.queries.certificates import certify, read_certificate
from mirrors.services import mirrors
from mirrors.services.rebuild import rebuild
from mirrors.services.settings import mirror_update
from mirrors.services.validations import validation_ask
from rbac.models import User
from tests.api import Api
from tests.fakes import FakeStore, Lake
from tests.mirroring.test_scenarios import forget_branch, history, mirrored, point, read, there
from tests.mirrors.harness import NAMESPACE, Deployment, age_roots, deployment, state_of, told_from_cache
from tests.mirrors.kept import once
from tests.mirrors.promise import (
    BLAME,
    age,
    arrive,
    before_call,
    damage,
    file_of,
    give_back,
    lose,
    lose_at_source,
    missing,
    own_range,
    page,
    real_job,
    run,
    verify,
    whys,
    with_entry,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def a(request: pytest.FixtureRequest, lm: Deployment) -> str:
    """A, which main points to at both sides."""
    return once(request, lm, lambda: mirrored(lm, a=b"1"))


def keep_away(lm: Deployment, commit: str, path: str) -> str:
    """An object of a commit has not arrived, all else has; gives its URI."""
    uri = f"{NAMESPACE}/{lm.lake.address_of(commit, path)}"
    lm.eu_store.hidden.add(uri)
    arrive(lm)
    return uri


def lose_database() -> None:
    for model in (Duty, Mirror, Repository):
        model.objects.all().delete()


# --- what is known to be missing --------------------------------------------------------------------------------------


def test_57_a_commit_that_waits_for_its_own_object_waits_for_a_shared_one_too(lm: Deployment, a: str) -> None:
    b = lm.lake.commit(files={"b": b"1"})
    own = keep_away(lm, b, "b")
    lm.work()
    assert Coverage.objects.order_by("pk")[1].bases, "its range was looked through without what A's has"
    shared = damage(lm, a, "a")
    give_back(lm, own)
    assert (lm.head(), missing(), whys()) == (a, ["a"], ["first-promotion"])
    assert page().state is State.DAMAGED
    give_back(lm, shared)
    assert (lm.head(), lm.torn()) == (b, [])


def test_58_what_one_range_has_lost_is_known_to_every_other_that_names_it(lm: Deployment) -> None:
    """Two were checked at once, each by itself."""
    first, second = lm.lake.commit(files={"x": b"1"}), lm.lake.commit(files={"y": b"1"})
    lm.arrive()
    lm.work()
    x = lose(lm, second, "x")
    age(range_id=own_range(lm, first))
    lm.work()
    assert missing() == ["x"]
    assert not Coverage.objects.exclude(bases=[]).exists()
    lm.lake.commit(files={"z": b"1"})
    arrive(lm)
    lm.work()
    assert (lm.head(), whys()) == (second, ["first-promotion"])
    give_back(lm, x)
    assert lm.head() == lm.lake.repository.branches["main"]


def test_58_what_is_lost_is_known_along_a_chain_of_ranges_at_once(lm: Deployment, a: str) -> None:
    """A round of promotion comes between the look at the first range and those at what is built on it."""
    mirrored(lm, b=b"1")
    c = mirrored(lm, c=b"1")
    lose(lm, a, "a")
    age(range_id=own_range(lm, a))
    run(lm, "validate")
    assert missing() == ["a"]
    lm.lake.commit(files={"d": b"1"})
    arrive(lm)
    run(lm, "sense", "copy")
    plain = commits.verify

    def verify_late(*given: Any, **options: Any) -> int:
        run(lm, "promote")
        return plain(*given, **options)

    with mock.patch("mirroring.validate.commits.verify", verify_late):
        run(lm, "validate")
    lm.work()
    assert (lm.head(), page().state) == (c, State.DAMAGED)


def test_58_wrong_bytes_that_a_deeper_look_found_count_for_new_commits(lm: Deployment, a: str) -> None:
    uri = f"{NAMESPACE}/{lm.lake.address_of(a, 'a')}"
    there_before, plain = lm.eu_store.head(uri), lm.eu_store.head
    lm.eu_store.objects[uri] = b"2"
    with real_job(lm), mock.patch.object(lm.eu_store, "head", lambda one: there_before if one == uri else plain(one)):
        with mock.patch("mirrors.services.validations.require_operation", return_value=("fs:OperateMirror", "*")):
            validation_ask(actor="system:tests", mirror=Mirror.objects.get(), branch="main", depth=Depth.CONTENT)
        lm.work()
        assert set(Blocker.objects.values_list("path", "reason")) == {("a", "content-differs")}
        b = lm.lake.commit(files={"b": b"1"})
        arrive(lm)
        lm.work()
        assert (lm.head(), page().state) == (a, State.DAMAGED)
        lm.eu_store.objects[uri] = b"1"
        lm.work()
        assert lm.head() == b


def test_59_a_revert_waits_for_the_metarange_that_vanished(lm: Deployment, a: str) -> None:
    b = mirrored(lm, b=b"1")
    gone = file_of(lm, a, 0)
    lm.eu_store.hidden.add(gone)
    revert = lm.lake.record_tree((b,), lm.lake.trees[a], "revert")
    point(lm, "main", revert)
    arrive(lm)
    lm.work()
    assert (lm.head(), whys()[-1]) == (b, "advanced")
    assert {thing.kind for thing in read().blockers} == {"metarange"}
    give_back(lm, gone)
    assert (lm.head(), lm.torn()) == (revert, [])


def test_59_a_head_whose_metarange_vanished_is_damaged_and_certified_no_more(lm: Deployment, a: str, api: Api) -> None:
    gone = file_of(lm, a, 0)
    lm.eu_store.hidden.add(gone)
    verify(lm)
    assert (lm.head(), page().state, read().state) == (a, State.DAMAGED, State.DAMAGED)
    regions = api.call("GET", f"/service/replication/v1/commits/{a}/regions")[1]["results"]
    assert {one["region"]: one["readable"] for one in regions} == {"us-east-1": True, "eu-west-1": False}
    with pytest.raises(LakeMirrorError):
        certify(Mirror.objects.get(), Commit.objects.get(sha=a))
    give_back(lm, gone)
    assert page().state is State.UP_TO_DATE


@pytest.mark.parametrize("more", [False, True], ids=["nothing-new", "a-new-commit"])
def test_60_a_destination_that_is_some_minutes_younger_gets_its_records_again(
    lm: Deployment, a: str, more: bool
) -> None:
    c = mirrored(lm, c=b"1")
    there(lm).branches["main"] = a
    del there(lm).commits[c]
    wanted = lm.lake.commit(files={"d": b"1"}) if more else c
    arrive(lm)
    lm.work(5)
    assert (lm.head(), lm.torn(), page().state) == (wanted, [], State.UP_TO_DATE)
    assert c in there(lm).commits
    assert "moved-by-somebody" not in whys(), "nobody is blamed for what a backup does"


def test_61_a_merged_commit_that_was_lost_before_the_merge_was_shown_holds_it(lm: Deployment, a: str) -> None:
    """It was whole when it was looked at first."""
    Mirror.objects.update(selected={"include": ["main"], "exclude": []})
    point(lm, "feature", a)
    f1 = lm.lake.commit("feature", {"f": b"1"})
    lm.lake.commit("feature", {"f": b"2"})
    lm.lake.merge("feature")
    last = lm.lake.commit(files={"m": b"1"})
    own = keep_away(lm, last, "m")
    Mirror.objects.update(paused=True)
    lm.work()
    assert state_of(f1).data == "complete"
    f = damage(lm, f1, "f")
    Mirror.objects.update(paused=False)
    give_back(lm, own)
    assert (lm.head(), whys()) == (a, ["first-promotion"])
    assert [thing.path for thing in read().blockers] == ["f"]
    give_back(lm, f)
    assert (lm.head(), lm.torn()) == (last, [])


def test_62_a_tag_whose_commit_was_lost_while_it_waited_is_not_made(lm: Deployment, a: str) -> None:
    Mirror.objects.update(tags=True)
    point(lm, "lone", a)
    t1 = lm.lake.commit("lone", {"t": b"1"})
    t2 = lm.lake.commit("lone", {"t": b"2"})
    del lm.lake.repository.branches["lone"]
    lm.lake.repository.tags["v"] = t2
    older = keep_away(lm, t1, "t")
    lm.work()
    assert (state_of(t2).data, there(lm).tags) == ("complete", {})
    newer = lose(lm, t2, "t")
    verify(lm)
    give_back(lm, older)
    assert (there(lm).tags, history("v")) == ({}, [])
    give_back(lm, newer)
    assert there(lm).tags == {"v": t2}


# --- who did it, and when ---------------------------------------------------------------------------------------------


def test_63_a_recreated_source_of_which_one_server_has_not_heard_moves_nothing(lm: Deployment, a: str) -> None:
    """One lists the new repository's branches, the other still answers with the old one's date."""
    old = lm.us.repositories.pop("lake").info
    made = Lake(lm.us, FakeStore())
    made.repository.branches["main"] = made._record((), "", "Repository created", {})  # later, so another commit
    born = replace(lm.us.repositories["lake"].info, creation_date=old.creation_date + 100)
    lm.us.repositories["lake"].info = born
    with told_from_cache(lm.us, lambda name: replace(born, creation_date=old.creation_date)):
        run(lm, "sense", "copy", "validate", "promote")
        assert (lm.head(), whys()) == (a, ["first-promotion"])
    lm.work()
    assert (lm.head(), read().state, whys()) == (a, State.FROZEN, ["first-promotion"])


def test_80_a_source_that_is_recreated_once_more_after_an_operator_let_it_go_on_moves_nothing(
    lm: Deployment, a: str
) -> None:
    """What was seen before it was frozen is not the first of two looks that it takes."""
    real = lm.us.repositories["lake"]
    for _ in range(2):
        lm.us.repositories.pop("lake")
        made = Lake(lm.us, FakeStore())
        made.repository.branches["main"] = made._record((), "", "Repository created", {})
        born = replace(lm.us.repositories["lake"].info, creation_date=real.info.creation_date + 100)
        lm.us.repositories["lake"].info = born
        age_roots(days=1)
        cached = replace(born, creation_date=real.info.creation_date)
        with told_from_cache(lm.us, lambda name, cached=cached: cached):
            run(lm, "sense", "copy", "validate", "promote")
            assert (lm.head(), whys()) == (a, ["first-promotion"])
        lm.work()
        assert read().state == State.FROZEN
        lm.us.repositories["lake"] = real
        Repository.objects.update(frozen_reason="")


@pytest.mark.parametrize("then", ["damaged", "deeper"])
def test_64_a_worker_that_died_after_its_move_blames_nobody_whatever_comes_then(
    lm: Deployment, a: str, owner: User, then: str
) -> None:
    b = lm.lake.commit(files={"b": b"1"})
    lm.arrive()
    with mock.patch("mirroring.promote.move_history.record", side_effect=RuntimeError("killed")):
        run(lm, "sense", "copy", "validate", "promote")
    assert (lm.head(), MirrorBranch.objects.get().head) == (b, a)
    if then == "deeper":
        mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"depth": "content"})
        run(lm, "promote")
    else:
        lose(lm, b, "b")
        verify(lm)
    lm.work()
    assert (lm.head(), history()[-1]) == (b, ("advanced", a, b))
    assert not BLAME.intersection(whys())
    assert page().state is (State.DAMAGED if then == "damaged" else State.UP_TO_DATE)


def test_65_books_that_are_a_minute_older_bring_no_branch_back(lm: Deployment, a: str) -> None:
    b = lm.lake.commit(files={"b": b"1"})
    lm.arrive()
    run(lm, "sense", "copy")
    models = [Repository, Commit, SourceBranch, Candidate, Mirror, MirrorBranch, MirrorCommit, Coverage]
    models += [MetarangeCoverage, Promotion, MoveIntent, Duty]
    dumped = [serializers.serialize("json", model.objects.all()) for model in models]
    run(lm, "validate", "promote")
    assert lm.head() == b
    lose_database()
    for text in dumped:
        for row in serializers.deserialize("json", text):
            row.save()
    lm.eu.calls.clear()
    Duty.objects.update(until=None)
    run(lm, "promote")
    lm.work()
    assert (lm.head(), MirrorBranch.objects.get().head, page().state) == (b, b, State.UP_TO_DATE)
    assert {"hard_reset_branch", "create_branch"}.isdisjoint(lm.eu.calls)
    assert not BLAME.intersection(whys())


# --- settings, and the moment of the act ------------------------------------------------------------------------------


def test_66_what_was_allowed_and_shown_and_is_blocked_now_is_not_shown_anew(
    lm: Deployment, a: str, owner: User
) -> None:
    Mirror.objects.update(imported="allow")
    old = with_entry(lm, a, "s3://elsewhere/x", AddressType.FULL)
    lm.eu_store.put("s3://elsewhere/x", b"odd")
    with real_job(lm):
        point(lm, "main", old)
        lm.arrive()
        lm.work()
        assert lm.head() == old
        new = mirrored(lm, odd=None)
        mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"imported": "block"})
        lm.work()
        point(lm, "again", old)
        lm.work()
        assert (lm.head(), lm.head("again"), history("again")) == (new, "", [])
        assert read("again").reason_code.startswith("object_imported")
        mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"imported": "allow"})
        lm.work()
        assert lm.head("again") == old


@pytest.mark.parametrize("what", ["depth", "paused", "frozen"])
@pytest.mark.parametrize("call", ["list_repositories", "put_commit_record"])
def test_67_what_is_changed_between_decision_and_call_stops_the_call(
    lm: Deployment, a: str, owner: User, what: str, call: str
) -> None:
    b = lm.lake.commit(files={"b": b"1"})
    lm.arrive()
    run(lm, "sense", "copy", "validate")
    changes: dict[str, Callable[[], Any]] = {
        "depth": lambda: mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"depth": "content"}),
        "paused": lambda: mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"paused": True}),
        "frozen": lambda: Repository.objects.update(frozen_reason="another one stands there"),
    }
    with before_call(lm, call, changes[what]) as moves:
        run(lm, "promote")
    assert (moves, lm.head(), whys()) == ([], a, ["first-promotion"])
    lm.work()
    assert lm.head() == (b if what == "depth" else a)


def test_67_a_source_that_freezes_in_the_middle_of_a_round_stops_the_rest_of_it(lm: Deployment, a: str) -> None:
    point(lm, "dev", a)
    lm.work()
    lm.lake.commit(files={"b": b"1"})
    lm.lake.commit("dev", {"d": b"1"})
    lm.arrive()
    run(lm, "sense", "copy", "validate")
    plain, moved = lm.eu.hard_reset_branch, list[str]()

    def freeze(repository: str, branch: str, commit: str) -> None:
        Repository.objects.update(frozen_reason="another one stands there")
        moved.append(branch)
        plain(repository, branch, commit)

    with mock.patch.object(lm.eu, "hard_reset_branch", freeze):
        run(lm, "promote")
    assert len(moved) == 1


@pytest.mark.parametrize("emptied", [False, True], ids=["its-place-is-as-it-was", "its-place-is-empty"])
def test_68_a_repository_made_anew_is_filled_by_what_is_there_now(lm: Deployment, a: str, emptied: bool) -> None:
    if emptied:
        for uri in [uri for uri in lm.eu_store.objects if uri.startswith(NAMESPACE)]:
            del lm.eu_store.objects[uri]
    info = there(lm).info
    del lm.eu.repositories["lake-eu"]
    made = lm.eu.add_repository("lake-eu", NAMESPACE, read_only=True)
    made.info = replace(made.info, creation_date=info.creation_date + 9)
    lm.checked.clear()
    lm.work(4)
    assert (lm.head(), lm.torn()) == ("" if emptied else a, [])
    assert (page().state is State.UP_TO_DATE) is not emptied
    arrive(lm)
    lm.work()
    assert (lm.head(), lm.torn(), page().state) == (a, [], State.UP_TO_DATE)
    assert lm.checked


@pytest.mark.parametrize("address", ["s3://elsewhere/x", "data/http://x/1"])
def test_69_an_address_below_the_namespace_that_looks_like_a_uri_is_looked_for_there(
    lm: Deployment, a: str, address: str
) -> None:
    odd = with_entry(lm, a, address, AddressType.RELATIVE)
    lm.eu_store.put("s3://elsewhere/x", b"odd")  # equal, and not what is meant
    point(lm, "main", odd)
    lm.arrive(address)
    lm.work(4)
    assert (lm.head(), missing()) == (a, ["odd"])
    assert not Blocker.objects.get().gone_at_source
    give_back(lm, f"{NAMESPACE}/{address}")
    assert (lm.head(), lm.torn()) == (odd, [])


def test_70_a_branch_that_somebody_made_is_not_deleted_by_a_certificate_of_old(lm: Deployment, a: str) -> None:
    """The source had one of that name once; then the database is lost."""
    b = mirrored(lm, b=b"1")
    point(lm, "dev", b)
    lm.work()
    forget_branch(lm, "dev")
    assert lm.head("dev") == ""
    there(lm).branches["dev"] = a
    lm.work()
    lose_database()
    list(rebuild(actor="system:tests", regions=["eu-west-1"]))
    for _ in range(3):
        lm.work(1)
        past = datetime.now(UTC) - timedelta(hours=1)
        SourceBranch.objects.filter(missing_since__isnull=False).update(missing_since=past)
    assert (lm.head("dev"), read("dev").reason_code) == (a, "stray_branch")
    assert "deleted-at-source" not in whys("dev")


def test_222_what_a_rebuilt_mirror_was_found_to_show_was_its_own(lm: Deployment, a: str) -> None:
    """Somebody moves the branch on before the source was looked at; then the destination's backup comes back."""
    b = lm.lake.commit(files={"b": b"1"})
    lm.arrive()
    for kind in ("sense", "copy", "validate"):
        run(lm, kind)
    lose_database()
    list(rebuild(actor="system:tests", regions=["eu-west-1"]))
    there(lm).branches["main"] = b
    run(lm, "sense")
    run(lm, "promote")
    assert whys() == ["found-there"]
    there(lm).branches["main"] = a
    lm.work(2)
    assert (lm.head(), whys()[1]) == (b, "back-where-it-was")


# --- one thing that is refused, and all the others --------------------------------------------------------------------


def refuse(lm: Deployment, commit: str, kind: str) -> str:
    """The store answers 403 for one thing of a commit; gives its URI."""
    uri = {
        "object": f"{NAMESPACE}/{lm.lake.trees[commit][b'bad'].address}",
        "range": file_of(lm, commit, 1),
        "metarange": file_of(lm, commit, 0),
    }[kind]
    error: LakeMirrorError = Denied("403 AccessDenied") if kind == "object" else Archived("403 InvalidObjectState")
    (lm.eu_store.refused if kind == "object" else lm.eu_store.unreadable)[uri] = error
    return uri


@pytest.mark.parametrize("small", [True, False], ids=["small", "by-the-job"])
@pytest.mark.parametrize("kind", ["object", "range", "metarange"])
def test_71_one_thing_that_is_refused_holds_its_branch_and_no_other(
    lm: Deployment, a: str, kind: str, small: bool
) -> None:
    lm.small_checks = small
    point(lm, "dev", a)
    lm.work()
    bad = lm.lake.commit("dev", {"bad": b"1"})
    with real_job(lm):
        lm.arrive()
        uri = refuse(lm, bad, kind)
        lm.work()
        good = lm.lake.commit(files={"good": b"1"})
        arrive(lm)
        lm.work()
        assert (lm.head(), lm.head("dev")) == (good, a)
        assert {thing.kind for thing in read("dev").blockers} == {kind}
        assert not Duty.objects.filter(failures__gt=0).exists()
        for refused in (lm.eu_store.refused, lm.eu_store.unreadable):
            refused.pop(uri, None)
        lm.work()
        assert lm.head("dev") == bad


def test_71_an_object_that_arrives_and_may_not_be_asked_for_holds_nobody_else(lm: Deployment, a: str) -> None:
    point(lm, "dev", a)
    bad = lm.lake.commit("dev", {"bad": b"1"})
    uri = keep_away(lm, bad, "bad")
    lm.work()
    lm.eu_store.hidden.discard(uri)
    lm.eu_store.refused[uri] = Denied("403 AccessDenied")
    good = lm.lake.commit(files={"good": b"1"})
    arrive(lm)
    lm.work()
    assert (lm.head(), lm.head("dev"), missing()) == (good, "", ["bad"])


def test_71_a_refused_range_of_old_keeps_nothing_else_from_being_looked_at(lm: Deployment, a: str) -> None:
    b = mirrored(lm, b=b"1")
    c = mirrored(lm, b=None, c=b"1")
    with real_job(lm):
        lm.eu_store.unreadable[f"{NAMESPACE}/_lakefs/{own_range(lm, b)}"] = Archived("403 InvalidObjectState")
        lose(lm, c, "c")
        verify(lm)
    assert "c" in missing()
    assert (lm.head(), page().state) == (c, State.DAMAGED)


def test_73_a_mirror_that_is_never_idle_looks_at_what_is_old_all_the_same(lm: Deployment, a: str) -> None:
    lose(lm, a, "a")
    age()
    for n in range(4):
        lm.lake.commit(files={"a": None, f"n{n}": b"1"})
        arrive(lm)
        lm.work(1)
    assert "a" in missing()


def test_216_a_range_that_waited_is_checked_again_by_the_time_of_its_check(lm: Deployment, a: str) -> None:
    late = lm.lake.commit(files={"a": b"2", "late": b"1"})
    lm.arrive(lm.lake.address_of(late, "late"))
    lm.work(2)
    waiting = Coverage.objects.filter(state="waiting")
    key = waiting.get().pk
    waiting.update(checked_at=datetime.now(UTC) - timedelta(days=4))
    lm.arrive()
    lm.work(2)
    row = Coverage.objects.get(pk=key)
    assert row.state == "complete"
    assert row.verify_at < datetime.now(UTC) + timedelta(days=3)


def test_217_what_is_old_has_its_share_while_much_is_in_question(lm: Deployment, a: str) -> None:
    for number in range(3):
        lm.lake.commit(files={f"n{number}": b"1"})
        lm.arrive()
        lm.work(2)
    first, *others = Coverage.objects.order_by("pk")
    now = datetime.now(UTC) - timedelta(seconds=1)
    Coverage.objects.filter(pk=first.pk).update(verify_at=now)
    doubted = Coverage.objects.filter(pk__in=[row.pk for row in others])
    doubted.update(state="waiting", doubt=Coverage.Doubt.WHOLE, verify_at=now)
    lm.checked.clear()
    with mock.patch("mirroring.validate.reverify.LOOKS", 1):
        lm.run(Duty.objects.get(kind="validate").pk)
    checked = [check.range_id if hasattr(check, "range_id") else check[0] for check in lm.checked]
    assert first.range_id in checked
    assert doubted.filter(doubt=Coverage.Doubt.WHOLE).exists()


@pytest.mark.parametrize("state", ["waiting", "complete"])
def test_221_what_gets_no_answer_keeps_no_other_range_from_its_turn(lm: Deployment, a: str, state: str) -> None:
    """A bucket that some were imported from is away, and as many ranges lie there as a round takes."""
    for number in range(5):
        mirrored(lm, **{f"d{number}/x": b"%d" % number})
    before = datetime.now(UTC)
    rows = list(Coverage.objects.order_by("pk"))
    changes = {"state": state, "doubt": Coverage.Doubt.WHOLE if state == "waiting" else Coverage.Doubt.NONE}
    earlier = {"verify_at": before - timedelta(seconds=9), "checked_at": before - timedelta(days=1)}
    Coverage.objects.update(**changes, **earlier)
    away, plain = {row.range_id for row in rows[:2]}, lm.run_check

    def run_check(mirror: Mirror, work: Any, on_rows: Any) -> None:
        plain(mirror, [(range_id, bases) for range_id, bases in work if range_id not in away], on_rows)
        if not away.isdisjoint(range_id for range_id, _ in work):
            raise Unreachable("that bucket is away")

    with (
        mock.patch.object(check_jobs, "run_check", run_check),
        mock.patch("mirroring.validate.reverify.BATCH", 2),
    ):
        for _ in range(10):
            lm.run(Duty.objects.get(kind="validate").pk)
    assert Coverage.objects.filter(checked_at__gt=before).count() == len(rows) - 2


def test_74_a_source_whose_namespace_ends_with_a_slash_is_asked_all_the_same(lm: Deployment) -> None:
    info = lm.lake.repository.info
    lm.lake.repository.info = replace(info, storage_namespace=f"{info.storage_namespace}/")
    Repository.objects.update(storage_namespace=f"{info.storage_namespace}/")
    first = lm.lake.commit(files={"x": b"1"})
    second = lm.lake.commit(files={"x": b"2"})
    lose_at_source(lm, first, "x")
    lm.arrive()
    lm.work(5)
    assert (lm.head(), state_of(first).data) == (second, "gone")


# --- what is told of a head -------------------------------------------------------------------------------------------


def test_75_an_adopted_head_that_lacks_something_is_never_called_up_to_date(owner: User) -> None:
    with deployment() as lm:
        head = lm.lake.commit(files={"a": b"1"})
        lm.arrive(lm.lake.address_of(head, "a"))
        made = lm.eu.add_repository("lake-eu", NAMESPACE, read_only=True)
        made.commits.update(lm.lake.repository.commits)
        made.branches["main"] = head
        mirrors.mirror_create(
            actor=owner,
            source_repository="lake",
            name="lake-eu",
            region="eu-west-1",
            storage_namespace=NAMESPACE,
            adopt=True,
        )
        told = [page().state]
        for _ in range(3):
            for kind in ("manage", "sense", "copy", "validate", "promote"):
                run(lm, kind)
                told.append(page().state)
        assert (lm.head(), told[-1], State.UP_TO_DATE in told) == (head, State.DAMAGED, False)
        assert not Promotion.objects.exists()
        assert state_of(head).promoted_at is None
        lm.arrive()
        lm.work()
        assert page().state is State.UP_TO_DATE


def test_75_a_rebuilt_head_that_lacks_something_is_never_called_up_to_date(lm: Deployment, a: str) -> None:
    lose(lm, a, "a")
    lose_database()
    list(rebuild(actor="system:tests", regions=["eu-west-1"]))
    told = [page().state]
    for _ in range(3):
        for kind in ("manage", "sense", "copy", "validate", "promote"):
            run(lm, kind)
            told.append(page().state)
    assert (lm.head(), told[-1], State.UP_TO_DATE in told) == (a, State.DAMAGED, False)


def test_76_a_branch_that_can_not_be_put_back_is_not_called_up_to_date(lm: Deployment, a: str) -> None:
    b = mirrored(lm, b=b"1")
    there(lm).branches["main"] = a
    lm.eu.failing["hard_reset_branch"] = Denied("403: branch is protected")
    lm.work()
    assert (lm.head(), read().state, page().state) == (a, State.TAMPERED, State.TAMPERED)
    assert (read().mirror_head, "protected" in page().sentence) == (a, True)
    assert read().lag != 0
    del lm.eu.failing["hard_reset_branch"]
    lm.work()
    assert (lm.head(), page().state) == (b, State.UP_TO_DATE)


def test_77_a_head_that_needs_what_both_sides_lost_is_damaged(lm: Deployment, a: str) -> None:
    lose_at_source(lm, a, "a")
    lose(lm, a, "a")
    verify(lm, rounds=4)
    assert Blocker.objects.get().gone_at_source
    assert (lm.head(), read().state, page().state) == (a, State.DAMAGED, State.DAMAGED)
    assert read_certificate("eu-west-1", NAMESPACE, "main") is None or not MirrorBranch.objects.get().proven


@pytest.mark.parametrize("number", [0, 1], ids=["metarange", "range"])
def test_78_a_head_whose_metadata_is_archived_is_damaged(lm: Deployment, a: str, number: int) -> None:
    uri = file_of(lm, a, number)
    lm.eu_store.unreadable[uri] = Archived("403 InvalidObjectState")
    plain = lm.eu_store.head

    def head(asked: str) -> Any:
        found = plain(asked)
        return found._replace(storage_class="GLACIER") if found and asked == uri else found

    with real_job(lm), mock.patch.object(lm.eu_store, "head", head):
        verify(lm, rounds=4)
        assert (lm.head(), read().state, page().state) == (a, State.DAMAGED, State.DAMAGED)
        assert not Duty.objects.filter(failures__gt=0).exists()
    lm.eu_store.unreadable.clear()
    lm.work()
    assert page().state is State.UP_TO_DATE
