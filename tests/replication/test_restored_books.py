"""The database is one of an hour ago, or what LakeMirror keeps at a target is lost: what is said, and that one look
through everything heals it without deleting anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.core import serializers

from core.replicating.eligible import is_own
from db import clock
from jobs.models import Duty
from replication.models import Rule
from replication.status.rules import rule_reading
from tests.api import Api
from tests.replication.world import World

pytestmark = pytest.mark.django_db


def backup() -> Callable[[], None]:
    """All rows of rules and their duties as they are now; called, they are so again."""
    models = [*apps.get_app_config("replication").get_models(), Duty]
    rows = [serializers.serialize("json", model._default_manager.order_by("pk")) for model in models]

    def restore() -> None:
        for model in reversed(models):
            model._default_manager.all().delete()
        for text in rows:
            for row in serializers.deserialize("json", text):
                row.save()

    return restore


def rule(w: World, **more: Any) -> None:
    """One that follows deletions, with what it has copied."""
    for key in "abcdef":
        w.put(key, key.encode())
    w.rule(markers=True, delete_percent=100, **more)
    w.work()
    through(w)


def through(w: World) -> None:
    """A look through everything, and more than a minute later what follows."""
    Rule.objects.update(scan_wanted=True)
    w.scan()
    w.scan()
    w.later(61)
    w.copy()


def word(w: World) -> str:
    Duty.objects.update(due_at=clock.now())
    return rule_reading(Rule.objects.get(), clock.now()).links[0].told.word


def source(w: World) -> dict[str, bytes]:
    return dict(w.home.buckets["src"])


def an_hour(w: World) -> None:
    """Of life: something comes, changes and goes, and the rule follows."""
    w.put("a", b"changed")
    w.put("new", b"new")
    del w.home.buckets["src"]["b"]
    through(w)
    through(w)
    assert w.there() == source(w)
    del w.home.buckets["src"]["c"]
    w.put("newer", b"newer")
    w.later(3600)


def test_9_a_database_of_an_hour_ago_heals_with_one_look_and_deletes_nothing(w: World) -> None:
    rule(w)
    restore = backup()
    an_hour(w)
    restore()
    deleted, sent = len(w.away.deleted), len(w.away.written)
    through(w)
    assert {key for _, key, _ in w.away.deleted[deleted:] if not is_own(key)} == set()
    assert source(w).items() <= w.there().items() and set(w.there()) - source(w).keys() == {"c"}
    assert [key for _, key, _ in w.away.written[sent:]] == ["newer"], "what is there is not sent again"
    assert word(w) == "Up to date"
    del w.home.buckets["src"]["d"]
    through(w)
    through(w)
    assert "d" not in w.there() and "c" in w.there(), "deletions are followed again, of what is known to be ours"


def test_9_one_of_before_anything_was_written_takes_its_own_place_up_again(w: World) -> None:
    for key in "abc":
        w.put(key)
    w.rule(markers=True, delete_percent=100, pinned=False)
    restore = backup()
    w.work()
    del w.home.buckets["src"]["a"]
    restore()
    w.put("d")
    through(w)
    through(w)
    assert word(w) == "Up to date" and set(w.there()) == {"a", "b", "c", "d"} and w.away.deleted == []


def test_31_what_lakemirror_keeps_at_the_target_is_lost(w: World) -> None:
    rule(w)
    for key in [key for key in w.away.buckets["out"] if "/rules/" in f"/{key}"]:
        del w.away.buckets["out"][key]
    del w.home.buckets["src"]["a"]
    w.put("new")
    through(w)
    assert "a" in w.there() and source(w).items() <= w.there().items() and w.away.deleted == []
    del w.home.buckets["src"]["b"]
    through(w)
    through(w)
    assert set(w.there()) - source(w).keys() == {"a"}


def test_31_with_its_pin_it_is_stale_and_confirmed_it_is_whole_again(w: World, api: Api) -> None:
    rule(w)
    for key in [key for key in w.away.buckets["out"] if is_own(key)]:
        del w.away.buckets["out"][key]
    del w.home.buckets["src"]["a"]
    w.put("new")
    through(w)
    assert word(w) == "Stale" and "new" not in w.there()
    assert api.call("POST", "/service/replication/v1/rules/r/links/1/confirm-target", {})[0] == 200
    through(w)
    through(w)
    assert word(w) == "Up to date" and source(w).items() <= w.there().items()
    assert w.away.deleted == [] and "a" in w.there()


def test_9_and_both_at_once(w: World) -> None:
    rule(w)
    restore = backup()
    an_hour(w)
    restore()
    for key in [key for key in w.away.buckets["out"] if "/rules/" in f"/{key}"]:
        del w.away.buckets["out"][key]
    deleted = len(w.away.deleted)
    through(w)
    through(w)
    assert {key for _, key, _ in w.away.deleted[deleted:] if not is_own(key)} == set()
    assert source(w).items() <= w.there().items()
