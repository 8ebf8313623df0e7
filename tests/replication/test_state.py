"""Where LakeMirror keeps what it knows of rules beside the database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from core.errors import Denied, Invalid, NotFound, Unreachable
from deployment import config
from deployment.config_sections import Replication, ReplicationState
from deployment.wiring import region_settings, replication_jobs
from replication.services.places import Target, check_apart
from tests.replication.world import AWAY, FAR, HOME, World, refusing, silent


def told(uri: str, region: str) -> Any:
    """The configuration with a place for it."""
    own = replace(config.current(), replication=Replication(ReplicationState(uri, region)))
    return mock.patch.object(config, "current", lambda: own)


def test_it_lies_below_the_target_unless_told(w: World) -> None:
    place = replication_jobs.state_of(AWAY, "s3://out/t")
    place.write("rules/7/a", b"one")
    assert w.away.buckets["out"] == {"t/_lakemirror/rules/7/a": b"one"}


def test_it_lies_where_the_configuration_says(w: World) -> None:
    with told("s3://two/kept/", FAR):
        replication_jobs.state_of(AWAY, "s3://out/t").write("rules/7/a", b"one")
    assert w.away.buckets["out"] == {}
    assert w.stores[FAR].buckets["two"] == {"kept/_lakemirror/rules/7/a": b"one"}


@pytest.mark.django_db
def test_no_rule_may_copy_to_it(w: World, owner: Any) -> None:
    source = region_settings.place(HOME, "s3://src")
    target = Target("targets.0.uri", FAR, region_settings.place(FAR, "s3://two/kept/_lakemirror"))
    check_apart(owner, source, [target])
    with told("s3://two/kept", FAR), pytest.raises(Invalid, match="where LakeMirror keeps what it knows of rules"):
        check_apart(owner, source, [target])


def test_what_is_written_is_read_listed_and_removed(w: World) -> None:
    place = replication_jobs.state_of(AWAY, "s3://out")
    for number in range(7):
        place.write(f"rules/7/{number}", b"%d" % number)
    place.write("rules/70/a", b"another's")
    place.write("rules/7/3", b"again")
    assert place.read("rules/7/3") == b"again"
    assert place.names("rules/7/") == [f"rules/7/{number}" for number in range(7)]
    place.delete(["rules/7/0", "rules/7/9"])
    assert not place.has("rules/7/0")
    assert place.names() == [*(f"rules/7/{number}" for number in range(1, 7)), "rules/70/a"]
    with pytest.raises(NotFound):
        place.read("rules/7/0")


def test_what_the_store_answers_is_raised(w: World) -> None:
    place = replication_jobs.state_of(AWAY, "s3://out")
    w.away.before = refusing(Denied("403"), "PUT", "DELETE", "DELETES")
    for act in (lambda: place.write("a", b""), lambda: place.delete(["a"])):
        with pytest.raises(Denied):
            act()
    w.away.before = silent()
    for ask in (lambda: place.read("a"), lambda: place.names(), lambda: place.has("a")):
        with pytest.raises(Unreachable):
            ask()
