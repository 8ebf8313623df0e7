"""What is broken in all processes on purpose: the soak has to find it. `scripts/soak rules --sabotage NAME`."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

SHARE = 0.1
LARGE = 1_000


def _swallow_deletes() -> None:
    """Deletions are called done, and are not."""
    from core.replicating.outcomes import Kind, Outcome
    from replication.engine.deletes.deleting import Deleting

    Deleting._once = lambda self, doomed: Outcome(Kind.DONE, sent=True)  # type: ignore[method-assign]


def _mix_contents() -> None:
    """Some objects end with bytes of others."""
    from adapters.s3.fast_store import FastObjectStore

    send = FastObjectStore.send

    def mixed(self: Any, method: str, url: str, doing: str, *more: Any, **named: Any) -> Any:
        told = inspect.signature(send).bind(self, method, url, doing, *more, **named).arguments
        body = told.get("body", b"")
        if method == "PUT" and len(body) > LARGE and "/_lakemirror/" not in url and random.random() < SHARE:
            headers = {name: value for name, value in told["headers"].items() if name.lower() != "content-md5"}
            told |= {"body": body[:-8] + bytes(8), "headers": headers, "unsigned": False}
        return send(**told)

    FastObjectStore.send = mixed  # type: ignore[method-assign]


def _let_the_older_win() -> None:
    """Whatever differs is replaced, whichever is newer."""
    from core.replicating import stamps

    stamps.is_newer = lambda source, there: True


def _bring_back() -> None:
    """Nobody remembers what was deleted where rules lead both ways."""
    from core.replicating.both_ways import tombstones
    from replication.engine.deletes import bars, both_ends

    forgetful = lambda *_: tombstones.Step(tombstones.Act.NOTHING)  # noqa: E731
    both_ends.step = forgetful  # type: ignore[assignment]
    bars.is_barred = lambda *_: False  # type: ignore[assignment]


def _delete_too_much() -> None:
    """Some of what was just copied is deleted at the target."""
    from spark_jobs.replicate.copying import Copying

    copy = Copying.copy

    def copied(self: Any, wanted: Any) -> Any:
        done = copy(self, wanted)
        if done.sent and random.random() < SHARE:
            bucket, _, key = self._target.uri(wanted.key).removeprefix("s3://").partition("/")
            store = self._target.store
            store.send("DELETE", store.url(bucket, key), "sabotage")
        return done

    Copying.copy = copied  # type: ignore[method-assign]


def _miscount() -> None:
    """One foreign object too many is told of each link."""
    from replication.engine import cycles
    from replication.models import Link
    from replication.transitions import manifests

    tell = manifests.tell_foreign

    def told(rule_id: int, link_ids: Any) -> None:
        tell(rule_id, link_ids)
        for link in Link.objects.filter(pk__in=list(link_ids)):
            Link.objects.filter(pk=link.pk).update(foreign_objects=(link.foreign_objects or 0) + 1)

    cycles.manifests.tell_foreign = told


MUTANTS: dict[str, Callable[[], None]] = {
    "deletes-are-swallowed": _swallow_deletes,
    "contents-are-mixed": _mix_contents,
    "the-older-wins": _let_the_older_win,
    "the-deleted-come-back": _bring_back,
    "too-much-is-deleted": _delete_too_much,
    "foreign-is-miscounted": _miscount,
}


def break_(name: str) -> None:
    """In this process, for good."""
    MUTANTS[name]()
