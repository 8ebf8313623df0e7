"""What is copied on request is told as it is: who asked for what, until when, and as long as anything of it is left."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

import pytest
from django.db.models import F
from django.test import Client

from core.errors import Denied
from db import clock
from lakemirror.output.missing_words import on_request as in_words
from mirrors.models import Blocker, Mirror
from mirrors.services.backlog import bringing_stop
from mirrors.status.copying import OnRequest, on_request, on_request_json
from mirrors.transitions import bringing
from mirrors.transitions.blockers import FRESH
from mirrors.transitions.causes import awaited
from rbac.models import User
from tests.mirroring.test_bring_asked import asked, bring, brought, hold_back, lake, spoilt, waits_for
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.views.test_pages import text
from web.serializers import rfc3339

__all__ = ["lake"]
pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def told() -> OnRequest:
    found = on_request(Mirror.objects.get(), clock.now())
    assert found is not None
    return found


def tom_asks(**which: object) -> None:
    """Somebody else has chosen objects copied."""
    mirror = Mirror.objects.get()
    bringing.ask(mirror, awaited(mirror).filter(**which), by="tom", replace=False, everything=False)


def hours_pass(hours: int) -> None:
    """All that was asked for was so long ago."""
    by = hours * HOUR
    Mirror.objects.update(bring_at=F("bring_at") - by, bring_all_at=F("bring_all_at") - by)
    Blocker.objects.update(bring_asked_at=F("bring_asked_at") - by, replace_asked_at=F("replace_asked_at") - by)


# --- who, and until when --------------------------------------------------------------------------------------------


def test_all_keeps_its_own_end_where_somebody_else_asks_for_chosen_ones_later(
    lake: Deployment, owner: User, olga: Client
) -> None:
    _, (one, _) = waits_for(lake, "x", "y")
    bring(owner)
    hours_pass(5)
    tom_asks(address=one)
    mirror, now = Mirror.objects.get(), clock.now()
    answer = on_request_json(mirror, now)
    assert answer is not None and answer["all"] is not None
    assert (answer["what"], answer["missing"], answer["asked_by"]) == ("all", 2, "tom")
    assert (answer["all"]["asked_by"], answer["all"]["asked_at"]) == ("olga", rfc3339(mirror.bring_all_at))
    assert mirror.bring_all_at is not None and mirror.bring_at is not None
    assert answer["all"]["ends_at"] == rfc3339(mirror.bring_all_at + 24 * HOUR)
    assert answer["ends_at"] == rfc3339(mirror.bring_at + 24 * HOUR)
    page, command = text(olga.get("/mirrors/lake-eu/")), in_words(answer, rfc3339(now) or "")
    for words in (
        "olga asked for all that was missing 5 h ago (this ends at the latest",
        ", and tom for chosen objects",
    ):
        assert words in page
        assert words in command


def test_once_the_chosen_ones_are_there_only_all_is_told(lake: Deployment, owner: User) -> None:
    _, (one, _) = waits_for(lake, "x", "y")
    bring(owner)
    hours_pass(5)
    tom_asks(address=one)
    Blocker.objects.filter(address=one).delete()
    now = told()
    assert (now.all, now.everything, now.last.by, now.last.at) == (
        None,
        True,
        "olga",
        Mirror.objects.get().bring_all_at,
    )


def test_who_asks_for_all_once_more_asks_for_what_the_first_one_has_asked_for_too(
    lake: Deployment, owner: User
) -> None:
    _, (one, _) = waits_for(lake, "x", "y")
    bring(owner)
    Blocker.objects.filter(address=one).update(reason="unreadable")
    hours_pass(5)
    mirror = Mirror.objects.get()
    bringing.ask(mirror, awaited(mirror), by="tom", replace=False, everything=True)
    now = told()
    assert (now.all, now.last.by, now.missing) == (None, "tom", 2)
    assert set(Blocker.objects.values_list("bring_asked_at", flat=True)) == {now.last.at}


def test_of_chosen_ones_it_is_told_who_asked_last(lake: Deployment, owner: User) -> None:
    _, (one, other) = waits_for(lake, "x", "y")
    bring(owner, addresses=[one])
    tom_asks(address=other)
    mirror, now = Mirror.objects.get(), clock.now()
    words = in_words(on_request_json(mirror, now), rfc3339(now) or "")
    assert words.startswith("LakeMirror copies 2 missing objects: last asked for by tom")


# --- as long as anything is left ------------------------------------------------------------------------------------


@pytest.mark.parametrize("everything", [True, False])
def test_what_the_store_refuses_to_show_for_a_moment_is_left(lake: Deployment, owner: User, everything: bool) -> None:
    head, [address] = waits_for(lake, "x")
    bring(owner, **({} if everything else {"addresses": [address]}))
    uri = f"{NAMESPACE}/{address}"
    lake.eu_store.refused[uri] = Denied("403")
    lake.work(2)
    assert Blocker.objects.get().reason == "unreadable"
    assert asked(lake) and told().missing == 1
    del lake.eu_store.refused[uri]
    lake.work(3)
    assert (lake.head(), brought(lake), asked(lake)) == (head, [address], False)


def test_so_is_what_is_to_be_replaced(lake: Deployment, owner: User) -> None:
    head, uri = spoilt(lake)
    bring(owner, replace=True)
    lake.eu_store.refused[uri] = Denied("403")
    lake.work(2)
    assert Blocker.objects.get().reason == "unreadable"
    assert asked(lake) and told().wrong == 1
    del lake.eu_store.refused[uri]
    lake.work(3)
    assert (lake.head(), lake.eu_store.objects[uri], asked(lake)) == (head, b"x", False)


def test_and_what_was_not_known_to_be_missing_before_it_was_refused(lake: Deployment, owner: User) -> None:
    head = lake.lake.commit(files={"x": b"x"})
    address = lake.lake.address_of(head, "x")
    uri = f"{NAMESPACE}/{address}"
    lake.work(2)
    bring(owner)
    lake.eu_store.refused[uri] = Denied("403")
    lake.work(4)
    assert [(row.reason, row.bring_asked_at) for row in Blocker.objects.all()] == [("unreadable", None)]
    assert asked(lake)
    del lake.eu_store.refused[uri]
    lake.work(3)
    assert (lake.head(), asked(lake)) == (head, False)


def test_who_stops_it_is_told_of_what_is_refused_too(lake: Deployment, owner: User) -> None:
    _, addresses = waits_for(lake, "x", "y")
    bring(owner)
    lake.eu_store.refused[f"{NAMESPACE}/{addresses[0]}"] = Denied("403")
    lake.eu_store.refused[f"{NAMESPACE}/{addresses[1]}"] = Denied("403")
    lake.work(2)
    assert told().missing == 2
    assert bringing_stop(actor=owner, mirror=Mirror.objects.get()) == 2
    assert not asked(lake)


def test_but_not_what_is_refused_for_long_and_was_never_missing(lake: Deployment, owner: User) -> None:
    head = lake.lake.commit(files={"x": b"x"})
    lake.eu_store.refused[f"{NAMESPACE}/{lake.lake.address_of(head, 'x')}"] = Denied("403")
    lake.work(2)
    bring(owner)
    lake.work(4)
    Blocker.objects.update(first_seen=clock.now() - FRESH)
    lake.work(1)
    assert not asked(lake)


def test_nor_what_is_refused_of_a_commit_that_came_later(lake: Deployment, owner: User) -> None:
    waits_for(lake, "x")
    bring(owner)
    _, address = hold_back(lake, "y")
    lake.eu_store.refused[f"{NAMESPACE}/{address}"] = Denied("403")
    lake.work(5)
    assert [row.address for row in Blocker.objects.all()] == [address]
    assert not asked(lake)


# --- in the list ----------------------------------------------------------------------------------------------------


def test_the_list_says_what_the_mirrors_page_says(lake: Deployment, owner: User, olga: Client) -> None:
    waits_for(lake, "x")
    said = "LakeMirror copies what is missing (1 object left)"

    def both() -> tuple[bool, bool]:
        return said in text(olga.get("/mirrors/lake-eu/")), said in text(olga.get("/mirrors/"))

    assert both() == (False, False)
    bring(owner)
    assert both() == (True, True)
    Mirror.objects.update(bring_at=None)  # a version before was asked
    assert both() == (True, True)
    Mirror.objects.update(paused=True)
    assert both() == (True, True)
    assert "held for now" in text(olga.get("/mirrors/"))
    Mirror.objects.update(paused=False, bring_at=clock.now() - 25 * HOUR, bring_all_at=clock.now() - 25 * HOUR)
    assert both() == (False, False)
    Mirror.objects.update(bring_at=clock.now(), bring_all_at=clock.now(), object_replication="managed")
    assert both() == (False, False)


def test_the_list_asks_nothing_of_mirrors_of_which_nobody_wants_anything(lake: Deployment) -> None:
    waits_for(lake, "x")
    with mock.patch("mirrors.status.copying._count", side_effect=AssertionError):
        assert on_request(Mirror.objects.get(), clock.now()) is None
