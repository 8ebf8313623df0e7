"""What is said of a mirror while a service of one of its regions does not answer, and of one that is looked at anew."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.installations.outages import Outage, OutageKind, Service
from core.mirroring.explain.mirror import explain
from core.mirroring.facts import MirrorFacts
from core.mirroring.rpo import Targets
from core.mirroring.states import State
from core.pauses import Pause
from tests.core.mirroring.test_explain import NOW, ago, behind, branch, judge, mirror


def out(region: str, service: Service = Service.LAKEFS) -> Outage:
    return Outage(
        region=region, service=service, kind=OutageKind.UNREACHABLE, since=NOW - timedelta(seconds=46), problem="503"
    )


@pytest.mark.parametrize(
    ("outage", "code"),
    [
        (out("us-east-1"), "source_unreachable"),
        (out("eu-west-1"), "destination_unreachable"),
        (out("eu-west-1", Service.STORE), "destination_unreachable"),
    ],
)
def test_nothing_is_up_to_date_while_a_side_does_not_answer(outage: Outage, code: str) -> None:
    verdict, [of_branch] = explain(mirror(branch(), outages=[outage]), NOW, Targets())
    assert (verdict.state, verdict.reason_code, of_branch.state) == (State.UNKNOWN, code, State.UNKNOWN)
    assert (
        f"{outage.service.word} of {outage.region} has not answered for 46 s".lower() in str(verdict.sentence).lower()
    )
    assert str(verdict.sentence).endswith("It was up to date when it was last checked.")


@pytest.mark.parametrize(
    "outage", [out("us-east-1"), out("eu-west-1"), out("eu-west-1", Service.STORE)], ids=["source", "lakeFS", "store"]
)
def test_a_pause_does_not_say_that_nothing_waits_while_a_side_does_not_answer(outage: Outage) -> None:
    verdict = judge(mirror(branch(), pause=Pause(at=ago(minutes=5)), outages=[outage]))
    assert verdict.state is State.PAUSED
    assert "has not answered" in str(verdict.sentence) and "othing waits" not in str(verdict.sentence)


def test_the_sources_store_alone_says_nothing_about_what_was_seen_at_both_sides() -> None:
    assert judge(mirror(branch(), outages=[out("us-east-1", Service.STORE)])).state is State.UP_TO_DATE


def test_what_is_behind_says_so_too_and_that_nothing_else_is_well() -> None:
    late = behind(name="late", oldest_seen_at=ago(seconds=20))
    verdict, verdicts = explain(mirror(branch(), late, outages=[out("eu-west-1")]), NOW, Targets())
    assert (verdict.state, [one.state for one in verdicts]) == (State.UNKNOWN, [State.UNKNOWN, State.SYNCING])
    assert "late is 4 commits" in str(verdict.sentence) and "up to date" not in str(verdict.sentence)


def test_a_first_copy_is_unknown_in_an_outage_and_says_how_far_it_was() -> None:
    verdict = judge(mirror(behind(mirror_head=""), first_copy=(3, 10), outages=[out("us-east-1")]))
    assert verdict.state is State.UNKNOWN
    assert "has not answered" in str(verdict.sentence) and "3 of 10 commits complete" in str(verdict.sentence)


def test_a_first_look_that_nobody_answers_is_no_look_under_way() -> None:
    verdict = judge(mirror(looked_at=None, outages=[out("us-east-1")]))
    assert verdict.state is State.RETRYING and "under way" not in str(verdict.sentence)


def test_a_pause_does_not_hide_it() -> None:
    told = str(judge(mirror(branch(), pause=Pause(), outages=[out("us-east-1")])).sentence)
    assert "Nothing waits" not in told and "The lakeFS of us-east-1 has not answered" in told


@pytest.mark.parametrize(
    "seen_long_ago",
    [
        mirror(branch(), looked_at=ago(hours=1), outages=[out("us-east-1")]),
        mirror(branch(), destination_looked_at=ago(hours=1), outages=[out("eu-west-1")]),
    ],
)
def test_nobody_is_sent_to_look_for_workers_in_an_outage(seen_long_ago: MirrorFacts) -> None:
    told = str(judge(seen_long_ago).sentence)
    assert "workers" not in told and "Check its lakeFS server" in told


def test_what_was_paused_is_being_checked_once_it_is_resumed() -> None:
    verdict = judge(mirror(branch(), destination_looked_at=ago(hours=1), moving=True))
    assert (verdict.state, verdict.reason_code) == (State.UNKNOWN, "not_looked_yet")
    assert str(verdict.sentence) == (
        "eu-west-1 was last checked 1 h ago, so what it has now is not known. It is being checked now."
    )


def test_a_look_that_fails_again_and_again_is_told_before_what_was_seen_is_old() -> None:
    fails = {"look_error": "403: no", "look_failures": 3}
    assert judge(mirror(branch(), look_error="403: no", look_failures=2)).state is State.UP_TO_DATE
    verdict = judge(mirror(branch(), **fails))
    assert (verdict.state, verdict.reason_code) == (State.RETRYING, "source_unreachable")
    assert judge(mirror(branch(), look_refused=True, **fails)).state is State.FAILED


def test_a_first_copy_does_not_become_unknown_while_the_worker_that_checks_is_starting() -> None:
    first = {"first_copy": (0, 4), "unchecked_since": ago(minutes=4)}
    assert judge(mirror(behind(mirror_head=""), **first)).state is State.UNKNOWN
    verdict = judge(mirror(behind(mirror_head=""), checks_start=True, **first))
    assert verdict.state is State.SYNCING and "The worker that validates is starting." in str(verdict.sentence)
    well = judge(mirror(branch(), checks_start=True, unchecked_since=ago(hours=8)))
    assert well.state is State.UNKNOWN and "“-spark” queue" not in str(well.sentence)
