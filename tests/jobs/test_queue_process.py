"""The queue within a cluster outlives each of its processes."""

from __future__ import annotations

import multiprocessing
import time

from django_q import cluster

from jobs.queue_process import LockFreeEvent, PatientQueue

fork = multiprocessing.get_context("fork")


def test_clusters_use_it() -> None:
    assert cluster.Queue is PatientQueue and cluster.Event is LockFreeEvent


def test_who_waits_for_a_message_may_be_killed() -> None:
    queue = cluster.Queue()
    waiting = fork.Process(target=queue.get, daemon=True)
    waiting.start()
    time.sleep(0.3)
    waiting.kill()
    waiting.join()
    queue.put("to whoever is left")
    assert queue.get(timeout=5) == "to whoever is left"


def test_each_message_is_read_once() -> None:
    queue, heard = cluster.Queue(), fork.Queue()

    def listen() -> None:
        for message in iter(queue.get, "STOP"):
            heard.put(message)

    readers = [fork.Process(target=listen, daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
    for message in [*range(200), *("STOP" for _ in readers)]:
        queue.put(message)
    assert sorted(heard.get(timeout=20) for _ in range(200)) == list(range(200))
    for reader in readers:
        reader.join(5)
        assert reader.exitcode == 0


def test_what_is_set_stays_set_and_everybody_sees_it() -> None:
    event = LockFreeEvent()
    assert not event.is_set() and not event.wait(0)
    setting = fork.Process(target=event.set)
    setting.start()
    assert event.wait(10) and event.wait() and event.is_set()
    setting.join()


def test_setting_waits_for_nobody_who_was_killed_while_waiting() -> None:
    event = LockFreeEvent()
    waiting = fork.Process(target=event.wait, daemon=True)
    waiting.start()
    waiting.kill()
    waiting.join()
    for _ in range(100_000):  # more bytes than a pipe holds
        event.set()
    assert event.is_set()
