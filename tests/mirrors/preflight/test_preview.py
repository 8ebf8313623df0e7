"""What a mirror would cost, before there is one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from audit.models import AuditEvent
from core.errors import Unreachable
from mirrors.models import Mirror, Repository
from rbac.models import User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.harness import Deployment, deployment

pytestmark = pytest.mark.django_db

PREVIEW = f"{MIRRORS}/preview"


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """A source with three branches and no mirror."""
    with deployment() as made:
        made.lake.commit(files={"a": b"1", "b": b"22"})
        made.lake.repository.branches["exp/1"] = made.lake.repository.branches["main"]
        made.lake.repository.branches["exp/2"] = made.lake.repository.branches["main"]
        made.lake.commit("exp/2", files={"c": b"333"})
        yield made


@pytest.fixture
def api(owner: User, lm: Deployment) -> Api:
    return Api(owner)


def preview(api: Api, **more: Any) -> dict[str, Any]:
    status, told = api.call("POST", PREVIEW, BODY | more)
    assert status == 200, told
    return told


def test_branches_commits_and_objects_of_the_heads_are_told_and_nothing_is_stored(api: Api, lm: Deployment) -> None:
    told = preview(api)
    assert (told["branches"], told["heads"]) == ({"all": 3, "selected": 3, "at_least": False}, {"all": 2, "read": 2})
    assert (told["commits"], told["at_least"]) == ({"number": 3, "at_least": False}, False)
    assert (told["metaranges"], told["ranges"], told["objects"]) == (2, 2, 5)
    assert (told["bytes"], told["bytes_estimated"]) == (2 * (1 + 2) + 3, False)
    assert told["metadata_bytes"] > 0
    assert told["first_check"]["at_best"] == {"get": 4, "list": 0, "head": 5, "seconds": 1.0}
    assert not Mirror.objects.exists()
    assert not Repository.objects.exists()
    assert not AuditEvent.objects.filter(action="fs:MirrorRepository", refused=False).exists()


def test_only_selected_branches_count(api: Api, lm: Deployment) -> None:
    told = preview(api, branches={"include": ["main", "nothing*"]})
    assert (told["branches"]["selected"], told["objects"], told["commits"]["number"]) == (1, 2, 2)
    assert told["warnings"] == ["include: 'nothing*' matches no branch now"]


def test_the_depth_is_the_one_that_is_asked_for(api: Api, lm: Deployment) -> None:
    cost = preview(api, validation_depth="content", content_sample=0.2)["first_check"]["at_best"]
    assert (cost["get"], cost["seconds"]) == (5, None)


def test_so_many_heads_are_read_at_most_the_default_branch_s_first(api: Api, lm: Deployment) -> None:
    with mock.patch("mirrors.preflight.cost.MOST_HEADS", 1):
        told = preview(api)
    assert (told["heads"], told["objects"], told["at_least"]) == ({"all": 2, "read": 1}, 2, True)
    assert told["commits"] == {"number": 2, "at_least": True}
    with mock.patch("mirrors.preflight.cost_sample.MOST_RANGES", 0):
        assert preview(api)["heads"]["read"] == 1


def test_so_many_branches_are_listed_at_most(api: Api, lm: Deployment) -> None:
    listed = lm.us.list_branches
    pages = mock.patch.object(lm.us, "list_branches", lambda name, after="": listed(name, after=after, amount=1))
    with mock.patch("mirrors.preflight.cost_sample.MOST_BRANCHES", 2), pages:
        told = preview(api)
    assert (told["branches"], told["at_least"]) == ({"all": 2, "selected": 2, "at_least": True}, True)


def test_a_metarange_that_is_not_there_is_not_counted(api: Api, lm: Deployment) -> None:
    head = lm.lake.repository.branches["main"]
    lm.us_store.hidden = {f"{lm.lake.namespace}/_lakefs/{lm.lake.files_of(head)[0]}"}
    told = preview(api)
    assert (told["heads"]["read"], told["objects"], told["at_least"]) == (0, 0, True)


def test_of_a_long_history_no_more_is_counted_than_its_length_shows(api: Api, lm: Deployment) -> None:
    lm.us.calls.clear()
    with mock.patch("mirrors.preflight.cost_sample.MOST_COMMITS", 2):
        assert preview(api)["commits"] == {"number": 3, "at_least": True}
    assert "log_commits" not in lm.us.calls


def test_a_log_that_goes_on_is_not_read_to_its_end(api: Api, lm: Deployment) -> None:
    listed = lm.us.log_commits
    pages = mock.patch.object(
        lm.us, "log_commits", lambda name, head, after="": listed(name, head, after=after, amount=1)
    )
    with mock.patch("mirrors.preflight.cost_sample.MOST_COMMITS", 3), pages:
        told = preview(api)
    assert told["commits"] == {"number": 3, "at_least": False}


def test_bytes_are_estimated_where_not_all_ranges_are_read(api: Api, lm: Deployment) -> None:
    with mock.patch("mirrors.preflight.cost_sample.SAMPLED_RANGES", 1):
        told = preview(api)
    assert told["bytes_estimated"]
    assert told["bytes"] in (round(3 * 5 / 2), round(6 * 5 / 3))


def test_bytes_are_not_known_where_no_range_can_be_read(api: Api, lm: Deployment) -> None:
    ranges = {found for head in lm.lake.repository.branches.values() for found in lm.lake.files_of(head)[1:]}
    lm.us_store.hidden = {f"{lm.lake.namespace}/_lakefs/{found}" for found in ranges}
    told = preview(api)
    assert (told["objects"], told["bytes"], told["bytes_estimated"]) == (5, None, True)


def test_a_source_that_takes_its_time_is_not_waited_for(api: Api, lm: Deployment) -> None:
    answer, get = threading.Event(), lm.us_store.get
    slow = mock.patch.object(lm.us_store, "get", lambda uri: answer.wait(10) and get(uri))
    with mock.patch("mirrors.preflight.cost_sample.SECONDS", 0.3), slow:
        told = preview(api)
        answer.set()
    assert (told["heads"], told["objects"], told["bytes"]) == ({"all": 2, "read": 0}, 0, 0)
    assert told["at_least"]


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"region": "mars"}, 400, "mars"),
        ({"name": "No"}, 400, "name"),
        ({"storage_namespace": "s3://src/lake/below"}, 400, "overlaps"),
        ({"branches": {"exclude": ["main"]}}, 400, "branches"),
        ({"colour": "blue"}, 400, "colour"),
    ],
)
def test_what_creation_refuses_is_refused_with_the_same_words(
    api: Api, lm: Deployment, change: dict[str, Any], status: int, says: str
) -> None:
    answer = api.call("POST", PREVIEW, BODY | change)
    assert answer == api.call("POST", MIRRORS, BODY | change)
    assert answer[0] == status
    assert says in answer[1]["message"]


def test_a_name_that_is_taken_is_refused(api: Api, lm: Deployment) -> None:
    assert api.call("POST", MIRRORS, BODY)[0] == 201
    assert api.call("POST", PREVIEW, BODY | {"storage_namespace": "s3://dst/other"})[0] == 409
    assert api.call("POST", PREVIEW, BODY | {"name": "other"})[0] == 409


def test_a_source_that_can_not_be_asked_is_named(api: Api, lm: Deployment) -> None:
    lm.us_store.down = Unreachable("the store does not answer")
    status, told = api.call("POST", PREVIEW, BODY)
    assert status == 503
    assert "the store does not answer" in told["message"]


def test_a_preview_needs_what_creation_needs(lm: Deployment, outsider: User) -> None:
    assert Api(outsider).call("POST", PREVIEW, BODY)[0] == 403


def test_a_mirror_may_be_named_preview(api: Api, lm: Deployment) -> None:
    assert api.call("POST", MIRRORS, BODY | {"name": "preview"})[0] == 201
    assert api.call("GET", PREVIEW)[1]["id"] == "preview"
    assert api.call("PATCH", PREVIEW, {"paused": True})[1]["paused"] is True
