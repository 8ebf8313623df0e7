"""What is said of rules and links."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.mirroring.states import State, Tone
from core.pauses import Pause
from core.replicating.explain import STATES, LinkFacts, ScanFacts, tell_link, tell_rule
from core.replicating.reasons import WORDS, reason_words
from core.replicating.states import Code, Health

NOW = datetime(2026, 11, 27, 7, 0, tzinfo=UTC)
AGO = NOW - timedelta(minutes=12)
COMPARED = ScanFacts(NOW - timedelta(minutes=3))
BLOCKED = {
    "health": Health.BLOCKED,
    "since": AGO,
    "code": Code.TARGET_DENIED,
    "message": "403 to put",
    "next_probe": NOW + timedelta(seconds=40),
}


def a_link(number: int = 1, **more: Any) -> LinkFacts:
    facts = {"compared_at": COMPARED.whole_at} | more
    return LinkFacts(number, f"s3://out-{number}", "eu-west-1", "s3://src", "us-east-1", **facts)


def told(link: LinkFacts, scan: ScanFacts = COMPARED) -> tuple[State, str]:
    one = tell_link(link, scan, NOW)
    return one.state, str(one.sentence)


@pytest.mark.parametrize(
    ("more", "state", "text"),
    [
        ({}, State.UP_TO_DATE, "It has all that the source had, compared 3 min ago."),
        (
            {"skipped": 2},
            State.UP_TO_DATE,
            "It has all that the source had, but 2 objects that can't be copied as they are, compared 3 min ago.",
        ),
        ({"pending": 1, "oldest": AGO}, State.SYNCING, "1 object to go, the oldest for 12 min."),
        ({"pending": 10**6, "more": True}, State.SYNCING, "More than 1,000,000 objects to go."),
        (
            {"failed": 2, "pending": 1},
            State.FAILED,
            "2 objects could not be copied: tried again once a day, and by Retry. 1 object to go.",
        ),
        (
            {"unlisted": "403 to list"},
            State.UNKNOWN,
            "s3://out-1 can't be listed, so what it lacks is not known: 403 to list.",
        ),
        (
            {**BLOCKED, "pending": 3},
            State.BLOCKED,
            "s3://out-1 has refused everything for 12 min: 403 to put. One object is tried in 40 s, then the others; "
            "3 objects wait.",
        ),
        (
            {**BLOCKED, "code": Code.SOURCE_DENIED, "message": "403 to get", "next_probe": NOW},
            State.BLOCKED,
            "s3://src has refused everything for 12 min: 403 to get. One object is tried now, then the others; "
            "what changes is noted.",
        ),
        (
            {**BLOCKED, "code": Code.NOT_CONFIGURED, "message": "unknown region 'mars'"},
            State.BLOCKED,
            "Nothing can be copied for 12 min: unknown region 'mars'.",
        ),
        (
            {"health": Health.DOWN, "code": Code.TARGET_DOWN, "message": "no answer", "pending": 1},
            State.RETRYING,
            "The store of eu-west-1 has not answered: no answer. It is tried again now; 1 object waits.",
        ),
        (
            {"health": Health.DOWN, "code": Code.SOURCE_DOWN, "message": "no answer"},
            State.RETRYING,
            "The store of us-east-1 has not answered: no answer. It is tried again now; what changes is noted.",
        ),
        (
            {"pause": Pause("new disks", None, AGO, "olga"), "pending": 2, **BLOCKED},
            State.PAUSED,
            "Paused by olga (new disks); 2 objects wait.",
        ),
    ],
)
def test_each_state_of_a_link_has_its_sentence(more: dict[str, Any], state: State, text: str) -> None:
    assert told(a_link(**more)) == (state, text)


def test_nothing_is_up_to_date_before_it_was_compared() -> None:
    new = a_link(compared_at=None)
    assert told(new, ScanFacts()) == (State.NEW, "Both places are being compared for the first time.")
    assert told(a_link(pending=1), ScanFacts())[0] is State.SYNCING
    assert told(new, ScanFacts(error="403 to list")) == (
        State.UNKNOWN,
        "What it lacks is not known: 403 to list; it was never compared.",
    )


@pytest.mark.parametrize(("compared_at", "last"), [(AGO, "last compared 12 min ago"), (None, "it was never compared")])
def test_a_target_that_was_left_out_when_all_was_compared_is_not_up_to_date(
    compared_at: datetime | None, last: str
) -> None:
    told_of = f"What it lacks is not known: the target could not be read when all was compared; {last}."
    assert told(a_link(compared_at=compared_at)) == (State.UNKNOWN, told_of)


def of_rule(*links: LinkFacts, scan: ScanFacts = COMPARED, pause: Pause | None = None) -> tuple[State, str]:
    one = tell_rule([(link, tell_link(link, scan, NOW, pause)) for link in links], scan, pause, NOW)
    return one.state, str(one.sentence)


def test_a_rule_is_as_its_worst_link() -> None:
    assert of_rule(a_link()) == told(a_link())
    assert of_rule(a_link(), a_link(2)) == (State.UP_TO_DATE, "Both targets are up to date.")
    assert of_rule(a_link(pending=1), a_link(2, **BLOCKED), a_link(3, failed=1)) == (
        State.BLOCKED,
        "1 of 3 targets is blocked. s3://out-2 has refused everything for 12 min: 403 to put. One object is tried in "
        "40 s, then the others; what changes is noted.",
    )
    assert of_rule(a_link(), a_link(2, failed=1), a_link(3, failed=1)) == (
        State.FAILED,
        "2 of 3 targets lack objects that failed. s3://out-2: 1 object could not be copied: tried again once a day, "
        "and by Retry.",
    )


def test_a_large_place_says_how_long_a_whole_comparison_takes() -> None:
    slow = ScanFacts(NOW - timedelta(minutes=3), whole_takes=4800.0)
    state, text = told(a_link(compared_at=NOW - timedelta(minutes=3)), slow)
    assert state is State.UP_TO_DATE and "a whole comparison takes 1 h here" in text


def test_a_source_that_cannot_be_compared_is_told_whatever_else_there_is() -> None:
    away = ScanFacts(NOW - timedelta(minutes=3), "403 to list")
    assert of_rule(a_link(), scan=away) == (
        State.UNKNOWN,
        "The places can't be compared: 403 to list; last compared 3 min ago.",
    )
    state, text = of_rule(a_link(**BLOCKED), scan=away)
    assert state is State.BLOCKED and text.endswith(
        "The places can't be compared: 403 to list; last compared 3 min ago."
    )
    refused = ScanFacts(None, "no such bucket", refused=True)
    assert of_rule(a_link(), scan=refused) == (State.FAILED, "The places can't be compared: no such bucket.")


def test_a_pause_of_a_rule_is_that_of_all_its_links() -> None:
    pause = Pause("", None, AGO, "olga")
    state, text = of_rule(a_link(**BLOCKED), pause=pause)
    assert (state, text) == (State.PAUSED, "Paused: nothing is copied, what changes is noted.")
    one = tell_link(a_link(pending=1), COMPARED, NOW, pause)
    assert str(one.sentence) == "The rule is paused; 1 object waits."


def test_red_is_for_what_needs_somebody() -> None:
    assert [state for state in STATES if state.tone is Tone.BAD] == [State.BLOCKED, State.FROZEN, State.FAILED]
    assert [state.severity for state in STATES if state.tone is Tone.GOOD] == [State.UP_TO_DATE.severity]


@pytest.mark.parametrize("code", Code)
def test_every_code_has_words(code: Code) -> None:
    assert WORDS[code] and reason_words(code.value) == WORDS[code]


def test_a_code_of_a_newer_version_is_told_as_it_is() -> None:
    assert reason_words("Newer") == "Newer"
