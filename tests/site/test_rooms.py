"""However many merges wait, everything else is served."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any
from unittest import mock

from lakemirror_site import gunicorn_settings
from lakemirror_site.rooms import HELD, HELD_PATH, SERVED, Rooms


class House:
    """An application in which whoever comes for a merge stays until the door is opened."""

    def __init__(self) -> None:
        self.door, self.inside, self.most, self.lock = threading.Event(), 0, 0, threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        if environ["PATH_INFO"] != "/quick":
            assert self.door.wait(20)
        with self.lock:
            self.inside -= 1
        if environ["PATH_INFO"] == "/broken":
            raise ValueError("broken")
        return [b"ok"]


def visit(rooms: Rooms, path: str) -> bytes:
    answer = rooms({"PATH_INFO": path}, lambda *_: None)
    try:
        return b"".join(answer)
    finally:
        answer.close()  # type: ignore[attr-defined]


def started(rooms: Rooms, path: str, number: int) -> list[threading.Thread]:
    threads = [threading.Thread(target=visit, args=(rooms, path), daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    return threads


def test_merges_that_wait_keep_nobody_else_out() -> None:
    house = House()
    rooms = Rooms(house)
    waiting = started(rooms, f"{HELD_PATH}eu", HELD)
    assert [visit(rooms, "/quick") for _ in range(SERVED * 3)] == [b"ok"] * SERVED * 3
    house.door.set()
    for thread in waiting:
        thread.join(20)
        assert not thread.is_alive()


def test_no_more_than_its_number_is_served_at_once() -> None:
    house = House()
    rooms = Rooms(house)
    waiting = started(rooms, "/slow", SERVED * 3)
    house.door.wait(0.3)
    assert house.most == SERVED
    house.door.set()
    for thread in waiting:
        thread.join(20)
    assert house.most == SERVED and visit(rooms, "/quick") == b"ok"


def test_a_request_that_breaks_leaves_its_room() -> None:
    house = House()
    house.door.set()
    rooms = Rooms(house)
    for _ in range(SERVED + 2):
        try:
            visit(rooms, "/broken")
        except ValueError:
            continue
    assert visit(rooms, "/quick") == b"ok"


def test_only_so_many_threads_keep_their_connection() -> None:
    house = House()
    house.door.set()
    rooms = Rooms(house)
    with mock.patch("lakemirror_site.rooms.connections.close_all") as close:
        visit(rooms, f"{HELD_PATH}eu")
        assert close.call_count == 1
        rooms._keeping = set(range(SERVED))
        visit(rooms, "/quick")
        assert close.call_count == 2


def test_a_process_has_threads_for_both() -> None:
    assert gunicorn_settings.threads == SERVED + HELD
