"""What the stores have not brought is copied once where somebody asks for it: that, nothing else, and never over what
is there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from datetime import timedelta
from hashlib import md5
from threading import Event
from typing import Any
from unittest import mock

import pytest
from django.db.models import F

from audit.models import AuditEvent
from core.errors import Conflict, Denied, Full
from core.exporting.deadline import Late
from core.mirroring.doubt import pack
from db import clock
from graveler.entries import AddressType, Entry, Timestamp
from jobs.models import Duty
from mirroring.validate import bring_asked
from mirrors.models import Blocker, Coverage, Mirror
from mirrors.services.backlog import bringing_stop, files_bring
from rbac.models import User
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db


@pytest.fixture
def lake(lm: Deployment) -> Deployment:
    """A native mirror that has all so far."""
    lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work(3)
    return lm


def waits_for(lake: Deployment, *names: str) -> tuple[str, list[str]]:
    """A commit of which these files are missing, and nothing else; their addresses."""
    head = lake.lake.commit(files={name: name.encode() for name in names})
    addresses = [lake.lake.address_of(head, name) for name in names]
    lake.arrive(*addresses)
    for address in addresses:  # hidden ones could not be written
        del lake.eu_store.objects[f"{NAMESPACE}/{address}"]
    lake.eu_store.hidden.clear()
    lake.work(3)
    lake.mover(None).brought.clear()
    return head, addresses


def brought(lake: Deployment) -> list[str]:
    return [uri.removeprefix(f"{NAMESPACE}/") for uri in lake.mover(None).brought]


def bring(owner: User, **which: Any) -> int:
    return files_bring(actor=owner, mirror=Mirror.objects.get(), **which)


def test_nothing_is_copied_unless_somebody_asks(lake: Deployment) -> None:
    waits_for(lake, "x")
    lake.work(3)
    assert brought(lake) == []
    assert Blocker.objects.count() == 1


def test_one_file_is_copied_and_the_others_stay_away(lake: Deployment, owner: User) -> None:
    head, (one, other) = waits_for(lake, "x", "y")
    assert bring(owner, ids=[Blocker.objects.get(address=one).pk]) == 1
    lake.work(3)
    assert brought(lake) == [one]
    assert [row.address for row in Blocker.objects.all()] == [other]
    assert lake.head() != head
    assert bring(owner, addresses=[other]) == 1
    lake.work(3)
    assert lake.head() == head
    assert lake.torn() == []
    assert Mirror.objects.get().copied == 2


def test_all_of_a_commit_of_which_nothing_has_come_is_copied(lake: Deployment, owner: User) -> None:
    head = lake.lake.commit(files={f"f{n}": b"x" for n in range(5)})
    lake.work(2)
    assert bring(owner) == 1, "only the metarange is known to be missing"
    lake.work(8)
    assert lake.head() == head
    assert lake.torn() == []
    assert len(brought(lake)) == 5
    assert Mirror.objects.get().bring_all_at is None, "it is done"


def test_what_came_by_itself_is_not_written_over(lake: Deployment, owner: User) -> None:
    _, [address] = waits_for(lake, "x")
    bring(owner)
    lake.eu_store.objects[f"{NAMESPACE}/{address}"] = b"the stores' own"
    lake.work(3)
    assert brought(lake) == []
    assert lake.eu_store.objects[f"{NAMESPACE}/{address}"] == b"the stores' own"
    assert Blocker.objects.get().reason == "size-differs"


def test_what_is_wrong_is_not_asked_for(lake: Deployment, owner: User) -> None:
    _, [address] = waits_for(lake, "x")
    lake.eu_store.objects[f"{NAMESPACE}/{address}"] = b"wrong bytes"
    lake.work(3)
    assert bring(owner, ids=[Blocker.objects.get().pk]) == 0
    lake.work(3)
    assert lake.eu_store.objects[f"{NAMESPACE}/{address}"] == b"wrong bytes"


def spoilt(lake: Deployment, path: str = "x") -> tuple[str, str]:
    """A commit of which one object came with other content; and where that lies."""
    head, [address] = waits_for(lake, path)
    uri = f"{NAMESPACE}/{address}"
    lake.eu_store.objects[uri] = b"wrong bytes"
    lake.work(3)
    return head, uri


def test_what_is_wrong_is_replaced_where_somebody_asks_for_just_that(lake: Deployment, owner: User) -> None:
    head, uri = spoilt(lake)
    assert bring(owner, replace=True) == 1
    lake.work(3)
    assert lake.eu_store.objects[uri] == b"x"
    assert (lake.head(), lake.torn(), Blocker.objects.count()) == (head, [], 0)


def test_a_permission_to_replace_is_for_once(lake: Deployment, owner: User) -> None:
    _, uri = spoilt(lake)
    assert bring(owner, ids=[Blocker.objects.get().pk], replace=True) == 1
    put, lake.eu_store.put = lake.eu_store.put, lambda uri, data: None  # type: ignore[method-assign]
    lake.work(1)
    lake.eu_store.put = put  # type: ignore[method-assign]
    assert Blocker.objects.get().replace_asked_at is None
    lake.work(3)
    assert lake.eu_store.objects[uri] == b"wrong bytes"


def test_what_the_source_does_not_have_as_the_commit_says_replaces_nothing(lake: Deployment, owner: User) -> None:
    _, uri = spoilt(lake)
    lake.us_store.objects[uri.replace(NAMESPACE, "s3://src/lake")] = b"overwritten at the source"
    assert bring(owner, replace=True) == 1
    lake.work(3)
    assert lake.eu_store.objects[uri] == b"wrong bytes" and brought(lake) == []
    row = Blocker.objects.get()
    assert (row.replace_asked_at, row.cause, row.is_explained) == (None, "NotReplaced", True)
    assert row.cause_told == "it was not replaced: the source does not have it as the commit says either"


def test_before_something_is_replaced_what_else_may_name_it_is_put_in_question(lake: Deployment, owner: User) -> None:
    spoilt(lake)
    row = Blocker.objects.get()
    other = Coverage.objects.filter(state="complete").first()
    assert other is not None
    Coverage.objects.filter(pk=other.pk).update(
        looked=pack([row.crc or 0]), min_key=row.path.encode(), max_key=row.path.encode()
    )
    bring(owner, replace=True)
    seen: list[str] = []
    bring_rows = bring_asked._Round.bring

    def watching(round_: Any, rows: Any) -> Any:
        seen.append(Coverage.objects.get(pk=other.pk).doubt)
        return bring_rows(round_, rows)

    with mock.patch.object(bring_asked._Round, "bring", watching):
        lake.work(1)
    assert seen == ["shared"]


def named_otherwise(lake: Deployment, uri: str, path: str) -> str:
    """A branch whose commit names what lies at `uri` as it is there, by another path; gives that commit."""
    data = lake.eu_store.objects[uri]
    entry = Entry(
        path=path.encode(),
        address=uri.removeprefix(f"{NAMESPACE}/"),
        size=len(data),
        etag=md5(data).hexdigest(),
        last_modified=Timestamp(1_795_000_000),
        metadata={},
        content_type="",
        address_type=AddressType.RELATIVE,
    )
    commit = lake.lake.record_tree((lake.head(),), {entry.path: entry}, "another name")
    lake.us.create_branch("lake", "other", commit)
    return commit


def test_what_is_right_for_another_commit_is_not_replaced_whatever_it_is_called_there(
    lake: Deployment, owner: User
) -> None:
    _, uri = spoilt(lake)
    other = named_otherwise(lake, uri, "zz/elsewhere")
    lake.arrive()
    lake.work(4)
    assert lake.head("other") == other and lake.torn() == []
    assert bring(owner, replace=True) == 1
    lake.work(4)
    assert lake.eu_store.objects[uri] == b"wrong bytes"
    assert (lake.head("other"), lake.torn(), brought(lake)) == (other, [], [])
    assert Blocker.objects.get(address=uri.removeprefix(f"{NAMESPACE}/")).replace_asked_at is None


def test_what_is_overwritten_at_the_source_after_the_look_replaces_nothing(lake: Deployment, owner: User) -> None:
    _, uri = spoilt(lake)
    head = bring_asked._Round._original

    def overwritten_right_after(round_: Any, source: str) -> Any:
        told = head(round_, source)
        lake.us_store.objects[source] = b"y"
        return told

    bring(owner, replace=True)
    with mock.patch.object(bring_asked._Round, "_original", overwritten_right_after):
        lake.work(1)
    assert lake.eu_store.objects[uri] == b"wrong bytes"


def test_who_has_lost_the_lease_since_the_question_replaces_nothing(lake: Deployment, owner: User) -> None:
    """Another worker may have found what is there right for something since, and shown that."""
    _, uri = spoilt(lake)
    question = bring_asked._question

    def taken_over_right_after(*about: Any) -> Any:
        told = question(*about)
        Duty.objects.filter(kind="validate").update(holder="another", attempt=F("attempt") + 1)
        return told

    bring(owner, replace=True)
    with mock.patch.object(bring_asked, "_question", taken_over_right_after):
        lake.work(1)
    assert lake.eu_store.objects[uri] == b"wrong bytes"
    assert Blocker.objects.get().replace_asked_at is not None


def test_a_damaged_range_is_replaced_by_what_gives_its_id(lake: Deployment, owner: User) -> None:
    head = lake.lake.commit(files={"x": b"1"})
    lake.arrive()
    [name] = [name for name in lake.lake.files_of(head) if name != lake.lake.repository.commits[head].metarange_id]
    uri = f"{NAMESPACE}/_lakefs/{name}"
    whole, lake.eu_store.objects[uri] = lake.eu_store.objects[uri], b"damaged"
    lake.work(3)
    assert Blocker.objects.get().reason == "range-damaged"
    bring(owner, replace=True)
    lake.work(4)
    assert lake.eu_store.objects[uri] == whole
    assert lake.head() == head


def test_metadata_that_does_not_give_its_id_is_not_written(lake: Deployment, owner: User) -> None:
    head = lake.lake.commit(files={"x": b"1"})
    metarange = lake.lake.repository.commits[head].metarange_id
    lake.us_store.objects[f"s3://src/lake/_lakefs/{metarange}"] = b"damaged"
    lake.work(2)
    bring(owner)
    lake.work(3)
    assert f"{NAMESPACE}/_lakefs/{metarange}" not in lake.eu_store.objects


def test_an_entry_that_names_metadata_is_not_copied_there(lake: Deployment, owner: User) -> None:
    waits_for(lake, "x")
    bring(owner)
    Blocker.objects.update(address="_lakemirror/x")
    lake.work(1)
    assert brought(lake) == []


def test_what_the_source_lacks_too_is_asked_for_no_more(lake: Deployment, owner: User) -> None:
    _, [address] = waits_for(lake, "x")
    bring(owner, addresses=[address])
    del lake.us_store.objects[f"s3://src/lake/{address}"]
    lake.work(3)
    row = Blocker.objects.get()
    assert (row.gone_at_source, row.bring_asked_at) == (True, None)


@pytest.mark.parametrize(
    ("change", "later"),
    [({"paused": True}, {"paused": False}), ({"state": "stopped"}, {"state": "active"})],
    ids=["paused", "stopped"],
)
def test_a_pause_holds_it_and_it_goes_on_afterwards(
    lake: Deployment, owner: User, change: dict[str, Any], later: dict[str, Any]
) -> None:
    head, _ = waits_for(lake, "x")
    bring(owner)
    Mirror.objects.update(**change)
    lake.work(2)
    assert brought(lake) == []
    with pytest.raises(Conflict, match="nothing is copied"):
        bring(owner)
    Mirror.objects.update(**later)
    lake.work(3)
    assert lake.head() == head


def test_a_switch_to_managed_ends_it(lake: Deployment, owner: User) -> None:
    head, _ = waits_for(lake, "x")
    bring(owner)
    Mirror.objects.update(object_replication="managed")
    lake.work(3)
    assert lake.head() == head
    assert Mirror.objects.get().bring_all_at is None
    with pytest.raises(Conflict, match="already"):
        bring(owner)


def interrupted(lake: Deployment, monkeypatch: pytest.MonkeyPatch, by: Callable[[], object]) -> None:
    """A round that copies and is waited for, in which `by` happens: whatever was begun must be stopped."""
    mover, stopped = lake.mover(None), Event()

    def copying(*_: Any) -> None:
        assert stopped.wait(20), "nobody stopped it"
        raise Late

    def waiting(jobs: Any, timeout: float) -> Any:
        by()
        return wait(jobs, timeout=0.05)

    monkeypatch.setattr(mover, "bring", copying)
    monkeypatch.setattr(mover, "stop", stopped.set)
    monkeypatch.setattr(bring_asked, "wait", waiting)
    lake.work(1)
    assert stopped.is_set()


def test_what_is_paused_while_it_copies_is_stopped(
    lake: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_for(lake, "x")
    bring(owner)
    interrupted(lake, monkeypatch, lambda: Mirror.objects.update(paused=True))
    assert Blocker.objects.get().bring_asked_at is not None, "it goes on after the pause"


def test_all_lasts_for_a_day(lake: Deployment, owner: User) -> None:
    waits_for(lake, "x")
    bring(owner)
    Blocker.objects.update(bring_asked_at=None)
    Mirror.objects.update(bring_all_at=clock.now() - timedelta(hours=25))
    lake.work(2)
    assert brought(lake) == []
    assert Mirror.objects.get().bring_all_at is None


def test_a_store_that_takes_nothing_is_told_to_who_asks_and_of_the_duty(lake: Deployment, owner: User) -> None:
    waits_for(lake, "x")
    lake.eu_store.down = Denied("403 AccessDenied")
    with pytest.raises(Conflict, match="takes no object: 403 AccessDenied"):
        bring(owner)
    lake.eu_store.down = None
    bring(owner)
    with mock.patch.object(lake.eu_store, "put", side_effect=Full("no room")):
        lake.work(1)
    lake.work(3)
    assert Blocker.objects.count() == 0, "it is tried again"


def test_what_has_no_turn_comes_in_the_next_round(lake: Deployment, owner: User) -> None:
    head, _ = waits_for(lake, "x", "y", "z")
    lake.mover(None).limit = 2
    bring(owner)
    lake.work(1)
    assert len(brought(lake)) == 2
    lake.mover(None).limit = None
    lake.work(3)
    assert lake.head() == head
    assert len(brought(lake)) == 3


# --- all that is missing when somebody asks -------------------------------------------------------------------------


def asked(lake: Deployment) -> bool:
    """Whether something that somebody asked for goes on."""
    return Mirror.objects.get().bring_at is not None


def hold_back(lake: Deployment, name: str) -> tuple[str, str]:
    """A commit at the source of which all arrives but one object; that one's address."""
    head = lake.lake.commit(files={name: name.encode()})
    address = lake.lake.address_of(head, name)
    lake.arrive(address)
    del lake.eu_store.objects[f"{NAMESPACE}/{address}"]
    lake.eu_store.hidden.clear()
    return head, address


def test_what_is_held_back_after_all_arrived_is_missing_and_not_brought(lake: Deployment, owner: User) -> None:
    head, _ = waits_for(lake, "x")
    bring(owner)
    lake.work(1)
    assert lake.head() == head
    brought_before = brought(lake)
    _, address = hold_back(lake, "y")
    lake.work(5)
    assert brought(lake) == brought_before, "it would hide that replication is dead"
    assert [(row.address, row.reason) for row in Blocker.objects.all()] == [(address, "missing")]
    assert lake.head() == head


def test_it_ends_in_the_round_that_finds_nothing_left(lake: Deployment, owner: User) -> None:
    waits_for(lake, "x")
    bring(owner)
    assert asked(lake)
    lake.work(1)
    assert Blocker.objects.count() == 0
    assert not asked(lake) and Mirror.objects.get().bring_all_at is None


def test_a_commit_that_is_sensed_while_all_is_copied_is_not_part_of_it(lake: Deployment, owner: User) -> None:
    _, [first] = waits_for(lake, "x")
    bring(owner)
    lake.us_store.down = Denied("403 AccessDenied")  # it goes on
    lake.work(1)
    assert asked(lake)
    lake.us_store.down = None
    _, later = hold_back(lake, "y")
    lake.eu_store.objects.pop(f"{NAMESPACE}/{first}")
    lake.work(5)
    assert brought(lake) == [first]
    assert {row.address for row in Blocker.objects.all()} == {later}
    assert not asked(lake)


def test_what_is_lost_after_somebody_asked_is_not_part_of_it(lake: Deployment, owner: User) -> None:
    head, _ = waits_for(lake, "x")
    lake.us_store.down = Denied("403 AccessDenied")
    bring(owner)
    lake.work(1)
    lost = lake.lake.address_of(head, "a")
    del lake.eu_store.objects[f"{NAMESPACE}/{lost}"]
    Coverage.objects.filter(state="complete").update(verify_at=clock.now())
    lake.us_store.down = None
    lake.work(5)
    assert lost not in brought(lake)
    assert {row.address for row in Blocker.objects.all()} == {lost} and not asked(lake)


def test_nothing_is_asked_for_where_nothing_is_missing(lake: Deployment, owner: User) -> None:
    assert bring(owner) == 0
    assert not asked(lake)


def test_what_a_range_lacks_beyond_what_is_kept_by_name_is_part_of_it(lake: Deployment, owner: User) -> None:
    """A range that was complete lost more than is noted: no commit waits for it."""
    head = lake.lake.commit(files={f"f{n}": b"x" for n in range(5)})
    lake.arrive()
    lake.work(3)
    lost = [lake.lake.address_of(head, f"f{n}") for n in range(5)]
    for address in lost:
        del lake.eu_store.objects[f"{NAMESPACE}/{address}"]
    Coverage.objects.update(verify_at=clock.now())
    with (
        mock.patch("mirroring.validate.run_check.KEPT_PER_HOLDER", 1),
        mock.patch("mirroring.validate.doubt_new_coverage.KEPT_PER_HOLDER", 1),
        mock.patch("mirrors.transitions.range_states.KEPT_PER_HOLDER", 1),
        mock.patch("mirrors.transitions.bringing.KEPT_PER_HOLDER", 1),
    ):
        lake.work(1)
        assert 0 < bring(owner) < 5
        lake.work(8)
        assert sorted(brought(lake)) == sorted(lost)
        assert not asked(lake) and not Coverage.objects.filter(bring_asked_at__isnull=False).exists()
    assert (Blocker.objects.count(), lake.torn()) == (0, [])


def test_it_can_be_stopped(lake: Deployment, owner: User, outsider: User) -> None:
    _, [address] = waits_for(lake, "x")
    assert bringing_stop(actor=owner, mirror=Mirror.objects.get()) == 0
    bring(owner)
    assert (Mirror.objects.get().bring_by, asked(lake)) == (owner.username, True)
    with pytest.raises(Denied):
        bringing_stop(actor=outsider, mirror=Mirror.objects.get())
    assert bringing_stop(actor=owner, mirror=Mirror.objects.get()) == 1
    lake.work(3)
    assert brought(lake) == [] and not asked(lake)
    assert [row.address for row in Blocker.objects.all()] == [address]
    events = AuditEvent.objects.filter(verb="stop_bringing")
    assert [(event.actor, event.subject) for event in events] == [(owner.username, "mirror/lake-eu")]


def test_what_is_stopped_while_it_copies_begins_nothing_more(
    lake: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_for(lake, "x")
    bring(owner)
    interrupted(lake, monkeypatch, lambda: bringing_stop(actor=owner, mirror=Mirror.objects.get()))
    assert not asked(lake) and Blocker.objects.get().bring_asked_at is None


def test_one_file_that_somebody_asked_for_is_asked_for_a_day(lake: Deployment, owner: User) -> None:
    _, [address] = waits_for(lake, "x")
    bring(owner, addresses=[address])
    day = clock.now() - timedelta(hours=25)
    Blocker.objects.update(bring_asked_at=day)
    Mirror.objects.update(bring_at=day)
    lake.work(2)
    assert brought(lake) == [] and not asked(lake)
    assert Blocker.objects.get().bring_asked_at is None


def test_what_a_version_before_was_asked_for_ends_too(lake: Deployment, owner: User) -> None:
    """It notes no more than when."""
    head, _ = waits_for(lake, "x")
    bring(owner)
    Mirror.objects.update(bring_at=None, bring_by="", bring_upto=None)
    lake.work(3)
    assert lake.head() == head
    assert Mirror.objects.get().bring_all_at is None
