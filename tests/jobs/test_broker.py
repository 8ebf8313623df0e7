"""The queue with a quicker ear: nothing is missed, and silence costs next to nothing."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs import broker
from jobs.broker import AttentiveBroker

pytestmark = pytest.mark.django_db(transaction=True)


def heard(listening: AttentiveBroker) -> list[str]:
    """The messages of one question."""
    return [message for _, message in listening.dequeue() or []]


def send_elsewhere(message: str) -> None:
    """Another process sends a message: here a thread, with a connection of its own."""

    def send() -> None:
        AttentiveBroker("wakes").enqueue(message)
        connection.close()

    thread = threading.Thread(target=send)
    thread.start()
    thread.join()


def test_what_another_connection_sends_is_heard_at_the_next_question() -> None:
    listening = AttentiveBroker("wakes")
    assert heard(listening) == []
    send_elsewhere("now")
    assert heard(listening) == ["now"]


def test_messages_behind_the_first_one_are_heard_too() -> None:
    listening = AttentiveBroker("wakes")
    assert heard(listening) == []
    for number in range(3):
        send_elsewhere(f"message {number}")
    assert [heard(listening) for _ in range(4)] == [["message 0"], ["message 1"], ["message 2"], []]


def test_while_nothing_is_committed_no_table_is_read() -> None:
    listening = AttentiveBroker("wakes")
    heard(listening)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        heard(listening)
    assert [query["sql"] for query in queries] == ["PRAGMA data_version"]


def test_what_the_connection_does_not_tell_of_is_heard_when_it_asks_to_be_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "SURE_SECONDS", 0.0)
    listening = AttentiveBroker("wakes")
    heard(listening)
    listening.enqueue("by the same connection")
    assert heard(listening) == ["by the same connection"]


def test_a_database_that_does_not_count_commits_is_asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "_commits_of_others", lambda: None)
    listening = AttentiveBroker("wakes")
    assert heard(listening) == []
    listening.enqueue("now")
    assert heard(listening) == ["now"]


@pytest.mark.parametrize("days", [-1, 1])
def test_a_process_whose_clock_is_a_day_off_hears_and_is_heard(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    now = timezone.now
    listening = AttentiveBroker("wakes")
    with monkeypatch.context() as wrong:
        wrong.setattr(timezone, "now", lambda: now() + timedelta(days=days))
        listening.enqueue("from another day")
    send_elsewhere("from today")
    assert heard(listening) == ["from another day"]
    with monkeypatch.context() as wrong:
        wrong.setattr(timezone, "now", lambda: now() + timedelta(days=days))
        assert heard(listening) == ["from today"]
        assert heard(listening) == []
    assert heard(listening) == []
