"""What a mirror needs of a lakeFS installation: the same tests on the fake, the sandbox's server and a real lakeFS."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock

import pytest

from adapters.lakefs import LakeFSAdapter
from core.errors import Conflict, Corrupt, Denied, LakeMirrorError, NotFound, RemoteFailure, Unauthenticated
from core.ports import LakeFS
from core.types import Commit, GcRules, Page, RecordOutcome, RepositoryInfo
from installations.permission_probes import target_at_destination, tries_of
from sandbox.client import Sandbox
from sandbox.lakefs_http import LakeFS as Http
from sandbox.lakefs_http import LakeFSError
from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY
from tests.fakes import FakeLakeFS, id_of


def record(message: str, *parents: Commit, metarange_id: str = "") -> Commit:
    generation = 1 + max((p.generation for p in parents), default=0)
    made = Commit(
        "", tuple(p.id for p in parents), "ada", message, 1_795_251_119, metarange_id, {"k": "v"}, generation, 1
    )
    return replace(made, id=id_of(made))


ROOT = record("root")
FIRST = record("first", ROOT)
SECOND = record('second ✓ and "quotes"', FIRST)
SIDE = record("side", ROOT)
MERGE = record("merge", SECOND, SIDE)


@pytest.fixture
def mirror(lakefs: LakeFS) -> str:
    name = f"mirror-{uuid.uuid4().hex[:10]}"
    lakefs.create_mirror_repository(name=name, storage_namespace=f"s3://lake-eu-west-1/{name}", default_branch="main")
    return name


def test_a_mirrors_repository_is_bare_and_read_only(lakefs: LakeFS, mirror: str) -> None:
    found = lakefs.get_repository(mirror)
    assert (found.id, found.default_branch, found.read_only) == (mirror, "main", True)
    assert found.storage_namespace == f"s3://lake-eu-west-1/{mirror}"
    assert found.creation_date > 1_700_000_000
    assert list(lakefs.list_branches(mirror).results) == []


def test_an_installation_tells_its_version_and_the_time(lakefs: LakeFS) -> None:
    found = lakefs.server()
    assert found.version[0].isdigit()
    assert found.clock_ahead is not None and abs(found.clock_ahead) < 2


def set_rules(lakefs: LakeFS, repository: str, days: int, branches: dict[str, int]) -> None:
    if isinstance(lakefs, FakeLakeFS):
        lakefs.gc[lakefs.get_repository(repository).storage_namespace] = GcRules(days, branches)
        return
    assert isinstance(lakefs, LakeFSAdapter)
    rows = [{"branch_id": name, "retention_days": kept} for name, kept in branches.items()]
    body = {"default_retention_days": days, "branches": rows}
    Http(lakefs.url).call("PUT", f"/repositories/{repository}/settings/gc_rules", json=body)


@pytest.mark.parametrize("branches", [{}, {"main": 28, "dev": 3}])
def test_every_repository_over_a_namespace_has_its_garbage_collection_rules(
    lakefs: LakeFS, branches: dict[str, int]
) -> None:
    name = f"gc-{uuid.uuid4().hex[:10]}"
    place = f"s3://lake-eu-west-1/{name}"
    if isinstance(lakefs, FakeLakeFS):
        lakefs.add_repository(name, place)
    else:
        assert isinstance(lakefs, LakeFSAdapter)
        Http(lakefs.url).create_repository(name, place)
    lakefs.create_mirror_repository(name=f"{name}-ro", storage_namespace=place, default_branch="main")
    assert lakefs.gc_rules(name) is lakefs.gc_rules(f"{name}-ro") is None
    set_rules(lakefs, name, 21, branches)
    assert lakefs.gc_rules(name) == lakefs.gc_rules(f"{name}-ro") == GcRules(21, branches)


def test_a_repository_that_is_not_there_has_no_rules_either(lakefs: LakeFS) -> None:
    with pytest.raises(NotFound):
        lakefs.gc_rules("no-such-repository")


def test_rules_can_not_be_set_in_a_mirrors_repository_nor_taken_away(lakefs: LakeFS, mirror: str) -> None:
    if isinstance(lakefs, FakeLakeFS):
        pytest.skip("it has no such call")
    for call in (partial(set_rules, lakefs, mirror, 1, {}), partial(delete_rules, lakefs, mirror)):
        with pytest.raises(LakeFSError, match="403: read-only repository"):
            call()


def delete_rules(lakefs: LakeFSAdapter, repository: str) -> None:
    Http(lakefs.url).call("DELETE", f"/repositories/{repository}/settings/gc_rules")


def test_rules_that_were_deleted_are_none(lakefs: LakeFS) -> None:
    if isinstance(lakefs, FakeLakeFS):
        pytest.skip("it has no such call")
    assert isinstance(lakefs, LakeFSAdapter)
    name = f"gc-{uuid.uuid4().hex[:10]}"
    Http(lakefs.url).create_repository(name, f"s3://lake-eu-west-1/{name}")
    set_rules(lakefs, name, 21, {})
    delete_rules(lakefs, name)
    assert lakefs.gc_rules(name) is None


@pytest.mark.parametrize(
    "told",
    [
        "null",
        "[]",
        '{"branches": []}',
        '{"default_retention_days": 1, "branches": [{}]}',
        '{"default_retention_days": 1, "branches": ["main"]}',
        '{"default_retention_days": 1, "branches": {"main": 7}}',
        '{"default_retention_days": 1e999}',
    ],
)
def test_rules_in_another_form_are_no_rules(told: str) -> None:
    with something_else(200, told) as url, pytest.raises(RemoteFailure, match="not from lakeFS"):
        LakeFSAdapter(url, "key", "secret", tries=1).gc_rules("lake")


def test_repositories_are_listed_page_by_page(lakefs: LakeFS, mirror: str) -> None:
    lakefs.create_mirror_repository(
        name=f"{mirror}-2", storage_namespace=f"s3://lake-eu-west-1/{mirror}-2", default_branch="main"
    )
    found: dict[str, RepositoryInfo] = {}
    after = ""
    while True:
        page = lakefs.list_repositories(after=after, amount=1)
        found.update((one.id, one) for one in page.results)
        after = page.next_after
        if not after:
            break
    assert list(found) == sorted(found)
    assert [found[name] for name in (mirror, f"{mirror}-2")] == [
        lakefs.get_repository(name) for name in (mirror, f"{mirror}-2")
    ]


def test_the_first_name_that_begins_with_a_name_is_that_one_until_it_is_deleted(lakefs: LakeFS, mirror: str) -> None:
    """At once: no list comes from a cache."""
    lakefs.create_mirror_repository(
        name=f"{mirror}-2", storage_namespace=f"s3://lake-eu-west-1/{mirror}-2", default_branch="main"
    )
    told = lakefs.get_repository(mirror)
    assert lakefs.list_repositories(prefix=mirror, amount=1).results == [told]
    lakefs.delete_repository(mirror)
    assert [one.id for one in lakefs.list_repositories(prefix=mirror, amount=1).results] == [f"{mirror}-2"]


def test_a_name_is_taken_once(lakefs: LakeFS, mirror: str) -> None:
    with pytest.raises(Conflict):
        lakefs.create_mirror_repository(
            name=mirror, storage_namespace="s3://lake-eu-west-1/other", default_branch="main"
        )


def test_what_is_not_there_is_not_found(lakefs: LakeFS, mirror: str) -> None:
    for call in (
        lambda: lakefs.get_repository("no-such-repository"),
        lambda: lakefs.list_branches("no-such-repository"),
        lambda: lakefs.get_branch(mirror, "nowhere"),
        lambda: lakefs.log_commits(mirror, "f" * 64),
        lambda: lakefs.create_branch(mirror, "main", "f" * 64),
        lambda: lakefs.hard_reset_branch(mirror, "nowhere", "f" * 64),
        lambda: lakefs.delete_branch(mirror, "nowhere"),
        lambda: lakefs.delete_repository("no-such-repository"),
    ):
        with pytest.raises(NotFound):
            call()


def test_records_are_accepted_once_in_any_order(lakefs: LakeFS, mirror: str) -> None:
    for commit in (MERGE, SECOND, ROOT, SIDE, FIRST):
        assert lakefs.put_commit_record(mirror, commit) is RecordOutcome.CREATED
        assert lakefs.put_commit_record(mirror, commit) is RecordOutcome.EXISTS
        assert lakefs.get_commit(mirror, commit.id) == commit


def test_a_record_that_does_not_give_its_id_is_corrupt(lakefs: LakeFS, mirror: str) -> None:
    with pytest.raises(Corrupt):
        lakefs.put_commit_record(mirror, replace(ROOT, message="tampered"))


def test_the_log_gives_the_whole_history_page_by_page(lakefs: LakeFS, mirror: str) -> None:
    for commit in (ROOT, FIRST, SECOND, SIDE, MERGE):
        lakefs.put_commit_record(mirror, commit)
    lakefs.create_branch(mirror, "main", MERGE.id)
    seen: list[Commit] = []
    after = ""
    while True:
        page = lakefs.log_commits(mirror, MERGE.id, after=after, amount=2)
        seen += page.results
        after = page.next_after
        if not after:
            break
    assert {c.id: c for c in seen} == {c.id: c for c in (ROOT, FIRST, SECOND, SIDE, MERGE)}
    assert len(seen) == 5


def test_branches_are_created_moved_read_back_and_deleted(lakefs: LakeFS, mirror: str) -> None:
    for commit in (ROOT, FIRST, SECOND):
        lakefs.put_commit_record(mirror, commit)
    lakefs.create_branch(mirror, "main", FIRST.id)
    lakefs.create_branch(mirror, "dev", ROOT.id)
    with pytest.raises(Conflict):
        lakefs.create_branch(mirror, "dev", ROOT.id)
    lakefs.hard_reset_branch(mirror, "main", SECOND.id)
    assert lakefs.get_branch(mirror, "main").commit_id == SECOND.id
    lakefs.hard_reset_branch(mirror, "main", FIRST.id)
    assert {b.name: b.commit_id for b in lakefs.list_branches(mirror).results} == {"main": FIRST.id, "dev": ROOT.id}
    lakefs.delete_branch(mirror, "dev")
    with pytest.raises(Denied):
        lakefs.delete_branch(mirror, "main")
    assert [b.name for b in lakefs.list_branches(mirror).results] == ["main"]


def names_in_pages(listing: Callable[..., Page[Any]], mirror: str) -> list[str]:
    """What a listing gives in pages of two."""
    names: list[str] = []
    after = ""
    while True:
        page = listing(mirror, after=after, amount=2)
        names += [one.name for one in page.results]
        after = page.next_after
        if not after:
            return names


def test_branches_are_listed_page_by_page(lakefs: LakeFS, mirror: str) -> None:
    lakefs.put_commit_record(mirror, ROOT)
    for n in range(5):
        lakefs.create_branch(mirror, f"b{n}", ROOT.id)
    assert names_in_pages(lakefs.list_branches, mirror) == [f"b{n}" for n in range(5)]


def test_a_hidden_branch_is_listed_only_when_hidden_ones_are_asked_for(lakefs: LakeFS, mirror: str) -> None:
    lakefs.put_commit_record(mirror, ROOT)
    lakefs.put_commit_record(mirror, FIRST)
    lakefs.create_branch(mirror, "main", ROOT.id)
    lakefs.create_branch(mirror, "secret", ROOT.id, hidden=True)
    assert [b.name for b in lakefs.list_branches(mirror).results] == ["main", "secret"]
    assert [b.name for b in lakefs.list_branches(mirror, hidden=False).results] == ["main"]
    lakefs.hard_reset_branch(mirror, "secret", FIRST.id)
    assert lakefs.get_branch(mirror, "secret").commit_id == FIRST.id
    assert [b.name for b in lakefs.list_branches(mirror, hidden=False).results] == ["main"]


def test_tags_are_created_read_back_and_deleted_but_never_moved(lakefs: LakeFS, mirror: str) -> None:
    for commit in (ROOT, FIRST):
        lakefs.put_commit_record(mirror, commit)
    lakefs.create_branch(mirror, "main", ROOT.id)
    lakefs.create_tag(mirror, "v1", FIRST.id)
    assert lakefs.get_tag(mirror, "v1").commit_id == FIRST.id
    for name in ("v1", "main"):
        with pytest.raises(Conflict):
            lakefs.create_tag(mirror, name, ROOT.id)
    with pytest.raises(Conflict):
        lakefs.create_branch(mirror, "v1", ROOT.id)
    assert {tag.name: tag.commit_id for tag in lakefs.list_tags(mirror).results} == {"v1": FIRST.id}
    lakefs.delete_tag(mirror, "v1")
    lakefs.create_tag(mirror, "v1", ROOT.id)
    assert lakefs.get_tag(mirror, "v1").commit_id == ROOT.id


def test_what_tag_is_not_there_is_not_found(lakefs: LakeFS, mirror: str) -> None:
    for call in (
        lambda: lakefs.list_tags("no-such-repository"),
        lambda: lakefs.get_tag(mirror, "nowhere"),
        lambda: lakefs.delete_tag(mirror, "nowhere"),
        lambda: lakefs.create_tag(mirror, "v1", "f" * 64),
    ):
        with pytest.raises(NotFound):
            call()


def test_tags_are_listed_page_by_page(lakefs: LakeFS, mirror: str) -> None:
    lakefs.put_commit_record(mirror, ROOT)
    for n in range(5):
        lakefs.create_tag(mirror, f"v{n}", ROOT.id)
    assert names_in_pages(lakefs.list_tags, mirror) == [f"v{n}" for n in range(5)]


def test_a_branch_can_not_point_at_a_record_that_is_not_there(lakefs: LakeFS, mirror: str) -> None:
    lakefs.put_commit_record(mirror, ROOT)
    lakefs.create_branch(mirror, "main", ROOT.id)
    unknown = record(f"never copied {uuid.uuid4()}")
    with pytest.raises(NotFound):
        lakefs.hard_reset_branch(mirror, "main", unknown.id)
    assert lakefs.get_branch(mirror, "main").commit_id == ROOT.id


def test_a_clean_branch_has_nothing_uncommitted(lakefs: LakeFS, mirror: str) -> None:
    lakefs.put_commit_record(mirror, ROOT)
    lakefs.create_branch(mirror, "main", ROOT.id)
    assert not lakefs.has_uncommitted(mirror, "main")
    lakefs.drop_uncommitted(mirror, "main")


@contextmanager
def something_else(status: int, page: str = "<h1>nothing here</h1>") -> Iterator[str]:
    """A server that answers everything with a page of its own; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [404, 409, 410])
def test_what_stands_in_front_of_lakefs_is_not_taken_for_it(status: int) -> None:
    with something_else(status) as url, pytest.raises(RemoteFailure, match="not from a lakeFS"):
        LakeFSAdapter(url, ACCESS_KEY_ID, SECRET_ACCESS_KEY, tries=1).get_repository("lake-eu")


@pytest.mark.parametrize(("mode", "raised"), [("revoked", Unauthenticated), ("denied", Denied)])
def test_who_refuses_which_key_is_told_and_what_to_do(
    sandbox_server: Sandbox, mode: str, raised: type[LakeMirrorError]
) -> None:
    region = sandbox_server.destination
    adapter = LakeFSAdapter(region.lakefs_url, ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    sandbox_server.server_faults(region.name, "lakefs", mode, count=1)
    with pytest.raises(raised) as refused:
        adapter.get_repository("lake-eu")
    for words in (region.lakefs_url, ACCESS_KEY_ID, "continues by itself"):
        assert words in str(refused.value)
    assert ("fs:ReadRepository there" in str(refused.value)) is (raised is Denied)
    assert SECRET_ACCESS_KEY not in str(refused.value)
    with pytest.raises(NotFound):
        adapter.get_repository("lake-eu")


def test_a_deleted_mirror_is_gone(lakefs: LakeFS, mirror: str) -> None:
    lakefs.delete_repository(mirror)
    with pytest.raises(NotFound):
        lakefs.delete_repository(mirror)


def test_hidden_branches_are_listed_in_pages_of_the_length_that_was_asked_for() -> None:
    """What no `show_hidden` asks for would be taken for deleted."""
    adapter = LakeFSAdapter("http://127.0.0.1:9", "key", "secret")
    with mock.patch.object(adapter._branches, "list_branches") as asked:
        asked.return_value.pagination.has_more = False
        adapter.list_branches("lake", amount=7)
    assert asked.call_args.kwargs["show_hidden"] is True
    assert asked.call_args.kwargs["amount"] == 7


@pytest.mark.parametrize("there", [True, False])
def test_what_is_tried_for_its_rights_alone_is_refused_and_changes_nothing(
    lakefs: LakeFS, mirror: str, there: bool
) -> None:
    lakefs.put_commit_record(mirror, ROOT)
    lakefs.create_branch(mirror, "main", ROOT.id)
    target = target_at_destination(mirror if there else "no-such-repository")
    reads = {"fs:ReadRepository", "fs:ListBranches", "fs:ListTags", "retention:GetGarbageCollectionRules"}
    listings = {"fs:ListRepositories"} | (reads if there else set())
    for action, call in tries_of("destination", tags=True).items():
        if action in listings:
            call(lakefs, target)
        else:
            with pytest.raises((NotFound, Corrupt)):
                call(lakefs, target)
    assert [(b.name, b.commit_id) for b in lakefs.list_branches(mirror).results] == [("main", ROOT.id)]
    assert list(lakefs.list_tags(mirror).results) == []
