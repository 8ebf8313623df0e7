"""Rules that copy all versions: what delete markers hide at a target, when, and who is asked first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import Archived, Denied, Unreachable
from core.replicating.states import ApprovalState
from db import clock
from replication.models import Approval, OpenObject, Rule
from replication.status.rules import rule_reading
from replication.transitions import deletions, freezing, touching
from tests.mirrors.harness import Deployment
from tests.replication.version_world import VersionedStore, VersionWorld, version_world
from tests.replication.world import AWAY, FAR, HOME, refusing

pytestmark = pytest.mark.django_db
BOTH = ((AWAY, "s3://out"), (FAR, "s3://out"))
KEYS = [f"k{number}" for number in range(10)]


@pytest.fixture
def v(lm: Deployment) -> Iterator[VersionWorld]:
    """Stores that keep versions: a plain target and an exact one."""
    with version_world(lm) as made:
        yield made


def copied(v: VersionWorld, *keys: str, **more: Any) -> None:
    """A rule to both targets has copied these, and seen that."""
    for key in keys:
        v.put(key, key.encode())
    v.rule(*BOTH, **more)
    v.work(1)
    v.look()
    assert shown(v.away) == shown(v.far) == set(keys)


def shown(store: VersionedStore, bucket: str = "out") -> set[str]:
    """The keys of which readers see an object."""
    return {key for key, chain in store.shown(bucket).items() if not chain[-1][1]}


def decide(v: VersionWorld, state: ApprovalState = ApprovalState.APPROVED) -> None:
    """Somebody answers whatever waits."""
    for approval in Approval.objects.filter(state="waiting"):
        deletions.decide(approval, state, "olga", clock.now())


def waiting() -> list[tuple[int, str]]:
    """Link and key of what waits to be let through, or for somebody."""
    rows = OpenObject.objects.filter(status="waiting").order_by("link__number", "key")
    return [(row.link.number, row.name) for row in rows]


# --- below the threshold ----------------------------------------------------------------------------------------------


def test_a_few_markers_travel_with_the_comparison_that_finds_them(v: VersionWorld) -> None:
    copied(v, *KEYS, delete_percent=10)
    v.drop("k3")
    v.look()
    assert v.away.shown("out") == v.home.shown("src") and v.far.ids("out") == v.home.ids("src")
    assert not OpenObject.objects.exists() and not Approval.objects.exists()
    assert [v.link(number).deleted_objects for number in (1, 2)] == [1, 1]
    v.check_counts()


def test_what_an_event_names_is_hidden_by_no_marker_before_all_was_compared(v: VersionWorld) -> None:
    copied(v, *KEYS)
    v.drop("k3")
    touching.objects_changed(HOME, {("src", "k3")})
    v.work(1)
    assert "k3" in shown(v.away) & shown(v.far) and waiting() == [(1, "k3"), (2, "k3")]
    assert {reading.told.word for reading in rule_reading(Rule.objects.get(), clock.now()).links} == {"Deleting"}
    v.look()
    assert "k3" not in shown(v.away) | shown(v.far)


def test_what_was_deleted_before_it_was_ever_copied_asks_nobody(v: VersionWorld) -> None:
    for key in KEYS:
        v.put(key)
        v.drop(key)
    v.rule(*BOTH, delete_percent=0)
    v.work(1)
    assert v.away.shown("out") == v.home.shown("src") and v.far.ids("out") == v.home.ids("src")
    assert not OpenObject.objects.exists()


def test_a_version_between_two_markers_waits_for_nobody_where_nothing_is_shown(v: VersionWorld) -> None:
    copied(v, *KEYS)
    v.drop("k1")
    v.look()
    Rule.objects.update(delete_percent=0)
    v.put("k1", b"again")
    v.drop("k1")
    v.look()
    assert v.away.shown("out") == v.home.shown("src") and v.far.ids("out") == v.home.ids("src")


# --- above it ---------------------------------------------------------------------------------------------------------


def test_30_more_markers_than_that_wait_and_copies_go_on(v: VersionWorld) -> None:
    copied(v, *KEYS, delete_percent=10)
    v.drop("k1")
    v.drop("k2")
    v.put("k3", b"another")
    v.put("new")
    v.look()
    assert shown(v.away) == shown(v.far) == {*KEYS, "new"}
    assert v.away.shown("out")["k3"] == v.home.shown("src")["k3"]
    assert [(one.number, one.of, one.bytes, one.first_keys) for one in Approval.objects.all()] == [
        (2, 10, 4, ["k1", "k2"])
    ] * 2
    assert waiting() == [(1, "k1"), (1, "k2"), (2, "k1"), (2, "k2")]
    decide(v)
    v.copy()
    assert v.away.shown("out") == v.home.shown("src") and v.far.ids("out") == v.home.ids("src")
    assert not OpenObject.objects.exists()
    v.check_counts()


def test_more_than_so_many_wait_however_many_the_target_shows(v: VersionWorld) -> None:
    copied(v, *KEYS, delete_percent=100, delete_most=1)
    v.drop("k1")
    v.drop("k2")
    v.look()
    assert Approval.objects.count() == 2 and shown(v.away) == set(KEYS)


def test_approved_is_exactly_that_list(v: VersionWorld) -> None:
    copied(v, *KEYS, delete_percent=10)
    v.drop("k1")
    v.drop("k2")
    v.look()
    v.drop("k3")
    decide(v)
    v.copy()
    assert shown(v.away) == shown(v.far) == {*KEYS} - {"k1", "k2"}
    v.look()
    assert waiting() == [(1, "k3"), (2, "k3")], "one of eight is more than a tenth"


def test_what_is_shown_again_by_then_stays(v: VersionWorld) -> None:
    copied(v, *KEYS, delete_percent=10)
    v.drop("k1")
    v.drop("k2")
    v.look()
    v.put("k1", b"again")
    decide(v)
    v.copy()
    assert shown(v.away) == shown(v.far) == {*KEYS} - {"k2"}
    v.look()
    assert v.away.shown("out") == v.home.shown("src") and v.far.ids("out") == v.home.ids("src")
    assert not OpenObject.objects.exists()


def test_a_version_that_comes_while_its_marker_waits_takes_the_marker_along_in_order(v: VersionWorld) -> None:
    copied(v, *KEYS, delete_percent=0)
    v.drop("k1")
    v.look()
    assert waiting() == [(1, "k1"), (2, "k1")]
    v.put("k1", b"again")
    v.look()
    assert v.away.shown("out")["k1"] == v.home.shown("src")["k1"] == [(b"k1", False), (None, True), (b"again", False)]
    assert v.far.ids("out") == v.home.ids("src") and waiting() == []


def test_another_marker_than_the_approved_one_is_asked_for_anew(v: VersionWorld) -> None:
    copied(v, *KEYS, delete_percent=0)
    v.drop("k1")
    v.look()
    v.put("k1", b"again")
    v.drop("k1")
    decide(v)
    v.copy()
    assert "k1" in shown(v.away) and "k1" in shown(v.far)
    v.look()
    assert v.away.shown("out")["k1"] == [(b"k1", False), (None, True), (b"again", False)]
    assert waiting() == [(1, "k1"), (2, "k1")]
    decide(v)
    v.copy()
    assert v.away.shown("out") == v.home.shown("src") and v.far.ids("out") == v.home.ids("src")


def test_what_somebody_rejects_stays_until_the_source_has_something_else(v: VersionWorld) -> None:
    copied(v, *KEYS, delete_percent=0)
    v.drop("k1")
    v.look()
    decide(v, ApprovalState.REJECTED)
    v.look()
    v.look()
    assert waiting() == [] and "k1" in shown(v.away) and "k1" in shown(v.far)
    v.put("k1", b"again")
    v.look()
    v.drop("k1")
    v.look()
    assert waiting() == [(1, "k1"), (2, "k1")]


def test_what_nobody_answers_is_asked_for_anew(v: VersionWorld) -> None:
    copied(v, *KEYS, delete_percent=0)
    v.drop("k1")
    v.look()
    v.later(8 * 86400)
    v.look()
    assert Approval.objects.filter(state="expired").count() == Approval.objects.filter(state="waiting").count() == 2
    assert waiting() == [(1, "k1"), (2, "k1")]


def test_a_version_that_cannot_be_copied_does_not_keep_the_marker_away(v: VersionWorld) -> None:
    copied(v, *KEYS)
    v.put("k1", b"archived")
    archived = v.home.chains["src"]["k1"][-1].id
    v.drop("k1")
    send = v.home.send

    def asked(method: str, url: str, doing: str, *more: Any, **named: Any) -> Any:
        if method == "GET" and archived in url:
            raise Archived("it is archived")
        return send(method, url, doing, *more, **named)

    v.home.send = asked  # type: ignore[method-assign]
    v.look()
    assert "k1" not in shown(v.away) | shown(v.far)


# --- a source that is not as it was -----------------------------------------------------------------------------------


def test_29_a_source_of_which_all_is_hidden_freezes_and_hides_nothing(v: VersionWorld) -> None:
    copied(v, *KEYS)
    for key in KEYS:
        v.drop(key)
    v.look()
    v.look()
    assert shown(v.away) == shown(v.far) == set(KEYS)
    assert {v.link(number).frozen_code for number in (1, 2)} == {"SourceEmpty"}
    for number in (1, 2):
        freezing.thaw(v.link(number))
    v.look()
    assert not shown(v.away) | shown(v.far)


def test_29_a_source_that_has_no_version_any_more_freezes(v: VersionWorld) -> None:
    copied(v, *KEYS)
    v.home.chains["src"].clear()
    v.look()
    assert {v.link(number).frozen_code for number in (1, 2)} == {"SourceEmpty"}
    assert shown(v.away) == shown(v.far) == set(KEYS)


def test_31_a_source_that_was_created_anew_hides_nothing(v: VersionWorld) -> None:
    v.home.created["src"] = "2026-01-01T00:00:00Z"
    copied(v, *KEYS, delete_percent=100)
    v.home.created["src"] = "2026-02-01T00:00:00Z"
    for key in KEYS[1:]:
        v.drop(key)
    v.look()
    assert shown(v.away) == shown(v.far) == set(KEYS)
    assert {v.link(number).frozen_code for number in (1, 2)} == {"SourceRecreated"}


def test_targets_that_cannot_be_listed_freeze_nothing(v: VersionWorld) -> None:
    copied(v, *KEYS)
    for store in (v.away, v.far):
        store.before = refusing(Denied("403"), "VERSIONS")
    v.look()
    assert v.link(1).frozen_since is None and v.link(2).frozen_since is None
    assert Rule.objects.get().full_shown == len(KEYS)


# --- what fails -------------------------------------------------------------------------------------------------------


def test_who_may_not_delete_is_told_and_copies_go_on(v: VersionWorld) -> None:
    keys = [f"k{number:02}" for number in range(30)]
    copied(v, *keys)
    for store in (v.away, v.far):
        store.before = refusing(Denied("403"), "DELETE")
    for key in keys[1:]:
        v.drop(key)
    v.put("new")
    v.look()
    assert "new" in shown(v.away) & shown(v.far)
    assert {v.link(number).health for number in (1, 2)} == {"up"}
    assert {row.code for row in OpenObject.objects.all()} == {"DstDelObjNotPermitted"}


def test_a_marker_of_which_no_answer_came_is_looked_for_before_it_is_tried_again(v: VersionWorld) -> None:
    copied(v, *KEYS)
    v.drop("k1")
    for store in (v.away, v.far):
        lost: list[str] = []

        def after(method: str, bucket: str, key: str, lost: list[str] = lost) -> None:
            if method == "DELETE" and not lost:
                lost.append(key)
                raise Unreachable("the answer is lost")

        store.after = after
    v.look()
    v.later(100)
    v.look()
    assert v.away.shown("out") == v.home.shown("src") and v.far.ids("out") == v.home.ids("src")


def test_nothing_is_hidden_at_a_target_that_is_not_the_pinned_one(v: VersionWorld) -> None:
    copied(v, *KEYS)
    v.drop("k1")
    Rule.objects.update(scan_wanted=True)
    v.scan()
    for store in (v.away, v.far):
        chains = store.chains["out"]
        for key in [key for key in chains if key.endswith("target.json")]:
            del chains[key]
    v.copy()
    assert "k1" in shown(v.away) & shown(v.far)
    assert v.link(1).stale_since and v.link(2).stale_since
