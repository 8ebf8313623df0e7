"""A mirror that brings its objects itself: what it copies, in which order, and what it says where it can't."""

from __future__ import annotations

import hashlib
import json
import time
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from adapters.s3.store_keys import keys_of, proof_key_of
from core.bringing import Side, Unbrought
from core.errors import Archived, Denied, Full, NotFound, RemoteFailure, Unreachable
from core.types import ObjectInfo
from deployment.config_sections import StoreCredentials
from deployment.reader import Secret
from graveler.metarange import read_metarange
from graveler.ranges import read_range
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror, Repository, Run
from mirrors.services.waivers import waiver_give
from rbac.models import User
from spark_jobs.check.progress import Progress, file_of
from tests.fakes import FakeMover
from tests.mirrors.harness import NAMESPACE, Deployment, state_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def lake(lm: Deployment) -> Deployment:
    """A mirror without any replication of its stores; its repository is there."""
    Mirror.objects.update(object_replication="managed")
    lm.work(1)
    return lm


def outcome() -> str:
    """What the last round of validation came to."""
    return Duty.objects.get(kind="validate").outcome


def mover(lake: Deployment) -> FakeMover:
    return lake.mover(None)


def root(lake: Deployment) -> str:
    """The commit with which the repository began."""
    return next(commit.id for commit in lake.lake.repository.commits.values() if not commit.parents)


def source_of(lake: Deployment, address: str) -> str:
    return f"{lake.lake.repository.info.storage_namespace.rstrip('/')}/{address}"


def test_everything_is_brought_and_the_branch_moves(lake: Deployment) -> None:
    head = lake.lake.commit(files={f"f{n:02}": b"x" * n for n in range(20)})
    lake.work()
    assert lake.head() == head
    assert lake.torn() == []
    assert Blocker.objects.count() == 0
    mirror, run = Mirror.objects.get(), Run.objects.order_by("pk").first()
    assert run is not None
    assert (run.lacking, run.copied, run.copied_bytes) == (20, 20, sum(range(20)))
    small = run.lanes["small"]
    assert (small["lacking"], small["begun"], small["ended"], small["passed_bytes"]) == (20, 20, 20, sum(range(20)))
    assert (mirror.copied, mirror.copied_bytes) == (20, sum(range(20)))


def test_the_order_is_objects_then_range_then_metarange(lake: Deployment) -> None:
    head = lake.lake.commit(files={"a": b"1", "b": b"2"})
    written: list[str] = []
    put = lake.eu_store.put
    with mock.patch.object(lake.eu_store, "put", lambda uri, data: (written.append(uri), put(uri, data))[1]):
        lake.work()
    ours = [uri for uri in written if "/_lakemirror/" not in uri]
    kinds = ["metadata" if "/_lakefs/" in uri else "object" for uri in ours]
    assert kinds == ["object", "object", "metadata", "metadata"]
    assert ours[-1] == f"{NAMESPACE}/_lakefs/{lake.lake.repository.commits[head].metarange_id}"


def test_39_a_first_copy_takes_each_object_once_heads_first_and_nothing_before_what_it_names(lake: Deployment) -> None:
    """Scenario 39, with 60 objects in 30 commits. Somebody watches each write."""
    for number in range(30):
        head = lake.lake.commit(files={f"f{number % 7}": b"%d" % number, f"g{number:02}": b"x"})
    metaranges = {commit.metarange_id for commit in lake.lake.repository.commits.values()}
    put, early = lake.eu_store.put, list[str]()

    def watched(uri: str, data: bytes) -> None:
        file = uri.rpartition("/")[2]
        if file in metaranges:
            named = [f"_lakefs/{ref.id}" for ref in read_metarange(data)]
        else:
            named = [entry.address for entry in read_range(data)] if "/_lakefs/" in uri else []
        early.extend(one for one in named if f"{NAMESPACE}/{one}" not in lake.eu_store.objects)
        put(uri, data)

    with mock.patch.object(lake.eu_store, "put", watched):
        lake.work()
    assert (lake.head(), lake.torn(), early) == (head, [], [])
    brought = [uri.removeprefix(f"{NAMESPACE}/") for uri in mover(lake).brought]
    assert len(brought) == len(set(brought)) == 60
    of_head = {entry.address for entry in lake.lake.trees[head].values()}
    assert set(brought[: len(of_head)]) == of_head


def test_40_what_is_asked_for_follows_the_change_and_not_the_repository(lake: Deployment) -> None:
    """Scenario 40, with ten changes in 100 and in 500 objects."""
    asked: list[tuple[int, int]] = []
    for size in (100, 500):
        lake.lake.commit(files={f"f{n:03}": b"%d" % size for n in range(size)})
        lake.work()
        head = lake.lake.commit(files={f"f{n:03}": b"changed in %d" % size for n in range(10)})
        get, put = lake.us_store.get, lake.eu_store.put
        with (
            mock.patch.object(lake.us_store, "get", side_effect=get) as gets,
            mock.patch.object(lake.eu_store, "put", side_effect=put) as puts,
        ):
            lake.work()
        assert lake.head() == head
        written = [call.args[0] for call in puts.call_args_list if "/_lakemirror/" not in call.args[0]]
        asked.append((gets.call_count, len(written)))
    assert asked[0] == asked[1]
    assert all(number <= 10 + 10 for number in asked[0])


def test_what_changes_little_is_brought_by_the_worker_itself(lake: Deployment) -> None:
    lake.small_checks = True
    with mock.patch("spark_jobs.check.job.source_of", lake.source_of):
        lake.lake.commit(files={f"f{n:02}": b"x" for n in range(20)})
        lake.work()
        lake.checked.clear()
        mover(lake).brought.clear()
        head = lake.lake.commit(files={"f00": b"changed"})
        lake.work()
    assert (lake.head(), lake.checked) == (head, [])
    assert len(mover(lake).brought) == 1, "what is there is not brought again"
    assert lake.torn() == []


def test_the_worker_has_the_keys_by_which_it_brings(lake: Deployment) -> None:
    seen: list[Any] = []
    signing: list[str] = []

    def check_small(work: Any, settings: Any, store: Any, on_bringing: Any) -> None:
        seen.extend(keys_of(place.region, place.access) for place in (settings, settings.source))
        signing.append(proof_key_of(settings.proof_key))

    mirror = Mirror.objects.get()
    keys = StoreCredentials("AKIAONLYINTHEFILE", Secret("its secret"), Secret(""))
    store = SimpleNamespace(credentials=keys)
    known = SimpleNamespace(
        regions=("us-east-1", "eu-west-1"),
        store=lambda region: store,
        export_stores={},
        derived_key=lambda purpose: "ab" * 32,
    )
    with (
        mock.patch("spark_jobs.check.job.check_small", check_small),
        mock.patch("deployment.wiring.executors.config", SimpleNamespace(current=lambda: known)),
        mock.patch.dict("adapters.s3.store_keys._remembered", clear=True),
    ):
        lake._check_small(mirror, [], lambda rows: None)
    assert [key and key.access_key_id for key in seen] == ["AKIAONLYINTHEFILE"] * 2
    assert signing == ["ab" * 32]


def test_one_object_that_the_source_lacks_holds_its_commit_alone(lake: Deployment) -> None:
    first = lake.lake.commit(files={"a": b"1", "b": b"2"})
    gone = lake.lake.address_of(first, "a")
    del lake.us_store.objects[source_of(lake, gone)]
    lake.work()
    assert lake.head() == root(lake)
    blocker = Blocker.objects.get(kind="object")
    assert (blocker.address, blocker.gone_at_source) == (gone, True)
    assert len(mover(lake).brought) == 1
    assert state_of(first).data == "gone"
    head = lake.lake.commit(files={"a": b"new"})
    lake.work(4)
    assert lake.head() == head, "history may be gone at both sides"


def test_what_was_lost_here_is_brought_again_by_the_next_look(lake: Deployment) -> None:
    lake.lake.commit(files={"a": b"1", "b": b"2"})
    lake.work()
    lost = next(uri for uri in lake.eu_store.objects if "/data/" in uri)
    del lake.eu_store.objects[lost]
    Coverage.objects.update(verify_at="2020-01-01T00:00:00Z")
    lake.work()
    assert lost in lake.eu_store.objects
    assert Blocker.objects.count() == 0
    assert lake.torn() == []


def range_of(lake: Deployment, commit: str) -> str:
    """Where the file of a commit's only range lies at the destination."""
    metarange = lake.lake.repository.commits[commit].metarange_id
    [name] = [name for name in lake.lake.files_of(commit) if name != metarange]
    return f"{NAMESPACE}/_lakefs/{name}"


def unseen(lake: Deployment, commit: str, name: str) -> tuple[str, Any]:
    """The address of an object of which nothing can be told at the destination, and what lets it tell nothing."""
    address, head = lake.lake.address_of(commit, name), lake.eu_store.head

    def asked(uri: str) -> ObjectInfo | None:
        if uri == f"{NAMESPACE}/{address}":
            raise RemoteFailure("500")
        return head(uri)

    return address, mock.patch.object(lake.eu_store, "head", asked)


def test_a_range_is_not_written_before_an_object_of_which_nothing_could_be_told(lake: Deployment) -> None:
    head = lake.lake.commit(files={"a": b"1", "b": b"2"})
    _, telling_nothing = unseen(lake, head, "a")
    with telling_nothing:
        lake.work()
    assert Blocker.objects.filter(reason="unreadable").exists()
    assert range_of(lake, head) not in lake.eu_store.objects
    lake.work(4)
    assert (lake.head(), lake.torn()) == (head, [])


@pytest.mark.parametrize("side", ["destination", "source"])
def test_but_before_one_that_history_may_lack(lake: Deployment, owner: User, side: str) -> None:
    old = lake.lake.commit(files={"a": b"1", "b": b"2"})
    address, telling_nothing = unseen(lake, old, "a")
    refused = mock.patch.object(FakeMover, "read", read_but(source_of(lake, address)))
    with telling_nothing if side == "destination" else refused:
        lake.work()
        assert range_of(lake, old) not in lake.eu_store.objects
        waiver_give(actor=owner, mirror=Mirror.objects.get(), objects=[address], reason="never copied")
        head = lake.lake.commit(files={"a": b"new"})
        lake.work(4)
    assert range_of(lake, old) in lake.eu_store.objects
    assert lake.head() == head


def test_nor_where_it_is_waived_and_there_with_other_content(lake: Deployment, owner: User) -> None:
    old = lake.lake.commit(files={"a": b"1", "b": b"2"})
    address = lake.lake.address_of(old, "a")
    with mock.patch.object(FakeMover, "read", read_but(source_of(lake, address))):
        lake.work()
        waiver_give(actor=owner, mirror=Mirror.objects.get(), objects=[address], reason="never copied")
        lake.eu_store.objects[f"{NAMESPACE}/{address}"] = b"other content"
        lake.lake.commit(files={"a": b"new"})
        lake.work(4)
    assert range_of(lake, old) not in lake.eu_store.objects


def read_but(refused: str) -> Any:
    """The mover's `read`, of which the source refuses an object."""
    read = FakeMover.read

    def reads(self: FakeMover, uri: str) -> bytes:
        if uri == refused:
            raise Unbrought(Side.SOURCE, Denied("403"))
        return read(self, uri)

    return reads


def test_wrong_bytes_are_written_over(lake: Deployment) -> None:
    head = lake.lake.commit(files={"a": b"right", "b": b"2"})
    address = lake.lake.address_of(head, "a")
    lake.eu_store.objects[f"{NAMESPACE}/{address}"] = b"ri"
    lake.work()
    assert lake.head() == head
    assert lake.eu_store.objects[f"{NAMESPACE}/{address}"] == b"right"


@pytest.mark.parametrize("what", ["range", "metarange"])
def test_metadata_that_broke_off_is_written_over(lake: Deployment, what: str) -> None:
    head = lake.lake.commit(files={"a": b"1"})
    metarange = lake.lake.repository.commits[head].metarange_id
    broken = metarange if what == "metarange" else next(f for f in lake.lake.files_of(head) if f != metarange)
    lake.eu_store.objects[f"{NAMESPACE}/_lakefs/{broken}"] = b"half"
    lake.work()
    assert lake.head() == head
    assert lake.torn() == []


@pytest.mark.parametrize(
    "error",
    [Denied("403 AccessDenied"), NotFound("404 NoSuchBucket"), Full("507 QuotaExceeded"), Unreachable("no answer")],
    ids=["denied", "no-bucket", "full", "away"],
)
def test_a_destination_that_takes_nothing_is_the_mirrors_reason(lake: Deployment, error: Exception) -> None:
    head = lake.lake.commit(files={f"f{n:02}": b"x" for n in range(30)})
    with mock.patch.object(FakeMover, "bring", side_effect=unbrought("destination", error)) as bring:
        lake.work()
    assert str(error) in outcome()
    assert bring.call_count < 60, "not each object is tried for it"
    assert lake.head() == root(lake)
    lake.work()
    assert lake.head() == head
    assert Blocker.objects.count() == 0


def test_a_source_that_shows_nothing_at_all_proves_nothing_by_a_404(lake: Deployment) -> None:
    lake.lake.commit(files={"a": b"1"})
    lake.work()
    lake.lake.commit(files={"a": b"2"})
    everything = dict(lake.us_store.objects)
    metadata = {uri: data for uri, data in everything.items() if "/_lakefs/" in uri}
    for uri in [uri for uri in everything if uri not in metadata]:
        del lake.us_store.objects[uri]
    with mock.patch.object(FakeMover, "shows", return_value=False):
        lake.work(1)
    assert "the source shows nothing below" in outcome()
    assert not Blocker.objects.filter(gone_at_source=True, kind="range").exists()
    lake.us_store.objects.update(everything)
    lake.work(4)
    assert lake.torn() == []
    assert Blocker.objects.count() == 0


def test_nor_does_it_of_a_range(lake: Deployment) -> None:
    head = lake.lake.commit(files={"a": b"1"})
    metarange = lake.lake.repository.commits[head].metarange_id
    everything = dict(lake.us_store.objects)
    lake.eu_store.objects[f"{NAMESPACE}/_lakefs/{metarange}"] = everything[source_of(lake, f"_lakefs/{metarange}")]
    lake.us_store.objects.clear()
    lake.work(1)
    assert "the source shows nothing below" in outcome()
    assert not Blocker.objects.filter(detail__contains="does not have it either").exists()
    lake.us_store.objects.update(everything)
    lake.work(4)
    assert lake.head() == head


def test_an_object_that_only_the_source_refuses_is_its_own_matter(lake: Deployment) -> None:
    first = lake.lake.commit(files={"a": b"1", "b": b"2"})
    closed = source_of(lake, lake.lake.address_of(first, "a"))
    lake.us_store.unreadable[closed] = Archived("403 InvalidObjectState")
    lake.work()
    blocker = Blocker.objects.get(kind="object")
    assert "archived" in blocker.detail
    assert not blocker.gone_at_source
    assert len(mover(lake).brought) == 1
    lake.us_store.unreadable.clear()
    lake.work()
    assert lake.head() == first


def test_a_slice_that_ends_goes_on_where_it_was(lake: Deployment) -> None:
    head = lake.lake.commit(files={f"f{n:02}": b"x" for n in range(12)})
    mover(lake).limit = 5
    lake.work(1)
    assert (lake.head(), len(mover(lake).brought)) == (root(lake), 5)
    assert Blocker.objects.filter(kind="object").count() == 0, "what had no turn yet is not missing"
    mover(lake).limit = None
    lake.work()
    assert (lake.head(), len(mover(lake).brought)) == (head, 12)


def test_while_copying_is_paused_nothing_is_brought_and_checks_go_on(lake: Deployment) -> None:
    Mirror.objects.update(copying_paused=True)
    head = lake.lake.commit(files={"a": b"1"})
    lake.work()
    assert (lake.head(), mover(lake).brought) == (root(lake), [])
    lake.arrive()
    lake.work()
    assert (lake.head(), mover(lake).brought) == (head, [])


def test_a_change_of_limits_ends_the_check_at_work_and_the_next_one_has_them(lake: Deployment) -> None:
    head = lake.lake.commit(files={"a": b"1"})
    plain, seen = lake.run_check, list[int]()

    def check(mirror: Mirror, work: Any, on_rows: Any) -> None:
        seen.append(mirror.copy_workers)
        Mirror.objects.update(copy_workers=2)
        on_rows([])
        plain(mirror, work, on_rows)

    with (
        mock.patch("deployment.wiring.check_jobs.run_check", check),
        mock.patch("mirroring.validate.run_check.LIMITS_SECONDS", -1.0),
    ):
        lake.work()
    assert seen[:2] == [16, 2]
    assert lake.head() == head


def test_34_a_change_of_the_rate_is_told_to_the_tasks_at_work(lake: Deployment) -> None:
    """Scenario 34, in the worker; what tasks do then: tests/spark/test_limits.py."""
    head = lake.lake.commit(files={"a": b"1"})
    plain, began = lake.run_check, time.time()

    def check(mirror: Mirror, work: Any, on_rows: Any) -> None:
        Mirror.objects.update(copy_bytes_per_second=10_000_000, copy_objects_per_second=50)
        on_rows([])
        on_rows([])
        plain(mirror, work, on_rows)

    with (
        mock.patch("deployment.wiring.check_jobs.run_check", check),
        mock.patch("mirroring.validate.run_check.LIMITS_SECONDS", -1.0),
    ):
        lake.work()
    told = json.loads(lake.eu_store.objects[f"{NAMESPACE}/_lakemirror/copying.json"])
    assert told.pop("at") >= began
    assert told == {"bytes_per_second": 1e7, "objects_per_second": 50.0, "ends": False}
    assert (lake.head(), Run.objects.count()) == (head, 1)


def test_what_tasks_at_work_tell_is_shown_while_their_rows_have_not_come(lake: Deployment) -> None:
    lake.lake.commit(files={f"f{n}": b"x" for n in range(3)})
    run_check, shown = lake.run_check, list[tuple[int, int]]()

    def at_work(mirror: Mirror, work: Any, on_rows: Any) -> None:
        told, old = Progress(lambda: 0), Progress(lambda: 0)
        told.expect([1, 1, 1])
        told.begin(1)
        told.end(1, copied=1, copied_bytes=1)
        old.expect([1] * 9)
        lake.eu_store.put(f"{NAMESPACE}/{file_of(0)}", told.file(time.time() + 1))
        lake.eu_store.put(f"{NAMESPACE}/{file_of(1)}", old.file(time.time() - 60))
        on_rows([])
        shown.append(Run.objects.order_by("-pk").values_list("lacking", "copied")[0])
        run_check(mirror, work, on_rows)

    now = mock.patch.multiple("mirroring.validate.run_check", LIMITS_SECONDS=0.0, PROGRESS_SECONDS=0.0)
    with now, mock.patch("deployment.wiring.check_jobs.run_check", at_work):
        lake.work()
    assert shown[0] == (3, 1)
    assert Run.objects.order_by("pk").values_list("lacking", "copied")[0] == (3, 3)
    assert Mirror.objects.get().copied == 3


def test_a_destination_that_takes_no_file_gets_a_job_by_the_new_limits(lake: Deployment) -> None:
    head = lake.lake.commit(files={"a": b"1"})
    plain, seen, put = lake.run_check, list[int | None](), lake.eu_store.put

    def check(mirror: Mirror, work: Any, on_rows: Any) -> None:
        seen.append(mirror.copy_bytes_per_second)
        Mirror.objects.update(copy_bytes_per_second=10_000_000)
        on_rows([])
        plain(mirror, work, on_rows)

    def refuse(uri: str, data: bytes) -> None:
        if "copying.json" in uri:
            raise Denied("403 AccessDenied")
        put(uri, data)

    with (
        mock.patch("deployment.wiring.check_jobs.run_check", check),
        mock.patch("mirroring.validate.run_check.LIMITS_SECONDS", -1.0),
        mock.patch.object(lake.eu_store, "put", refuse),
    ):
        lake.work()
    assert (seen[:2], lake.head()) == ([None, 10_000_000], head)


@pytest.mark.parametrize("change", ["paused", "stopped", "frozen"])
def test_a_check_at_work_copies_no_further_once_the_mirror_may_not(lake: Deployment, change: str) -> None:
    lake.lake.commit(files={"a": b"1"})
    plain = lake.run_check

    def check(mirror: Mirror, work: Any, on_rows: Any) -> None:
        if change == "frozen":
            Repository.objects.update(frozen_reason="another repository")
        else:
            Mirror.objects.update(**{"copying_paused": True} if change == "paused" else {"state": "stopped"})
        on_rows([])
        plain(mirror, work, on_rows)

    with (
        mock.patch("deployment.wiring.check_jobs.run_check", check),
        mock.patch("mirroring.validate.run_check.LIMITS_SECONDS", -1.0),
    ):
        lake.work(1)
    assert mover(lake).brought == []


@pytest.mark.parametrize("file", ["_lakemirror/mirror.json", "_lakefs/retention/gc/rules/config.json"])
def test_an_entry_can_t_name_a_file_of_the_mirror_s_own_to_be_written_over(lake: Deployment, file: str) -> None:
    """Who may stage an entry names its address, below the source's namespace; who may write there, its bytes."""
    own = lake.eu_store.objects.setdefault(f"{NAMESPACE}/{file}", b"what is here already")
    lake.lake.commit(files={"a": b"1"})
    lake.us_store.objects[source_of(lake, file)] = b"what somebody would like to be here"
    lake.lake.describe("a", address=file, size=35, etag=hashlib.md5(b"what somebody would like to be here").hexdigest())
    lake.work()
    assert lake.eu_store.objects[f"{NAMESPACE}/{file}"] == own
    blocker = Blocker.objects.get(kind="object")
    assert blocker.address == file and "it is not copied" in blocker.detail


def test_what_only_the_mirror_has_right_is_not_written_over(lake: Deployment) -> None:
    """The source's object was overwritten; the copy, in parts, still has the ETag of the commit."""
    Mirror.objects.update(depth="content")
    lake.lake.commit(files={"a": b"12345"})
    lake.lake.describe("a", address="data/large", etag="e" * 32)
    lake.us_store.objects[source_of(lake, "data/large")] = b"wrong"
    uri, plain = f"{NAMESPACE}/data/large", lake.eu_store.head
    lake.eu_store.objects[uri] = b"right"

    def in_parts(asked: str) -> ObjectInfo | None:
        info = plain(asked)
        return info._replace(etag="e" * 32 + "-2") if info and asked == uri else info

    with mock.patch.object(lake.eu_store, "head", in_parts):
        lake.work()
    assert lake.eu_store.objects[uri] == b"right"
    assert "the ETag at the destination is the commit's" in Blocker.objects.get(kind="object").detail


def test_42_native_to_managed_and_back_while_things_are_missing(lake: Deployment) -> None:
    Mirror.objects.update(object_replication="native")
    head = lake.lake.commit(files={"a": b"1", "b": b"2", "c": b"3"})
    missing = lake.lake.address_of(head, "a")
    lake.arrive(missing)
    lake.work()
    assert lake.head() == root(lake)
    del lake.eu_store.objects[f"{NAMESPACE}/{missing}"]
    lake.eu_store.hidden.clear()
    Mirror.objects.update(object_replication="managed")
    lake.work()
    assert lake.head() == head
    assert mover(lake).brought == [f"{NAMESPACE}/{missing}"], "no object twice"
    Mirror.objects.update(object_replication="native")
    lake.lake.commit(files={"a": b"4"})
    lake.work()
    assert lake.head() == head
    assert lake.torn() == []


def test_nothing_is_brought_into_a_repository_that_is_in_doubt(lake: Deployment) -> None:
    lake.lake.commit(files={"a": b"1"})
    Mirror.objects.update(state="stopped")
    lake.work()
    assert mover(lake).brought == []


def test_what_does_not_read_back_is_not_there(lake: Deployment) -> None:
    head = lake.lake.commit(files={"a": b"1"})

    def torn(mover: FakeMover, source: str, uri: str, size: int) -> ObjectInfo:
        mover.store.put(uri, b"")
        return ObjectInfo(uri.split("/", 3)[3], 0, "d41d8cd98f00b204e9800998ecf8427e")

    with mock.patch.object(FakeMover, "bring", torn):
        lake.work()
    assert lake.head() == root(lake)
    assert Blocker.objects.filter(reason="size-differs").exists()
    lake.work()
    assert lake.head() == head


def unbrought(side: str, error: Exception) -> Exception:
    from core.bringing import Side, Unbrought

    assert isinstance(error, NotFound | RemoteFailure | Denied | Unreachable)
    return Unbrought(Side(side), error)
