"""What the scenarios of loss and damage are played with: things vanish, are found out, and come back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pyarrow as pa

from core.mirroring.promotion import Why
from deployment.wiring import check_jobs
from graveler.entries import AddressType, Entry, Timestamp
from jobs.models import Duty
from mirrors.models import Blocker, Coverage, Mirror, Promotion
from mirrors.status.mirror import MirrorStatus, mirror_status
from spark_jobs.check import job
from spark_jobs.runner import _Handover
from tests.fakes import BulkStandIn, replicate
from tests.mirroring.test_scenarios import point
from tests.mirrors.harness import NAMESPACE, Deployment

ACTIONS = {"create_branch", "hard_reset_branch", "delete_branch"}
BLAME = {Why.FOREIGN, Why.BACK, Why.VANISHED}


def lose(lm: Deployment, commit: str, path: str) -> str:
    """An object of a commit vanishes at the destination; gives its URI there."""
    uri = f"{NAMESPACE}/{lm.lake.address_of(commit, path)}"
    lm.eu_store.hidden.add(uri)
    return uri


def lose_at_source(lm: Deployment, commit: str, path: str) -> None:
    """An object of a commit vanishes at the source."""
    del lm.us_store.objects[f"s3://src/lake/{lm.lake.address_of(commit, path)}"]


def file_of(lm: Deployment, commit: str, number: int) -> str:
    """The URI of a commit's metadata at the destination: 0 is its metarange, those after it are its ranges."""
    return f"{NAMESPACE}/_lakefs/{lm.lake.files_of(commit)[number]}"


def own_range(lm: Deployment, commit: str) -> str:
    """The id of the first range that a commit has and its first parent hasn't."""
    record = lm.lake.repository.commits[lm.lake.repository.commits[commit].parents[0]]
    known = lm.lake.files_of(record.id) if record.metarange_id else []
    return next(one for one in lm.lake.files_of(commit)[1:] if one not in known)


def age(**which: Any) -> None:
    """The time of these ranges, and of all metaranges, to be looked at again has come."""
    due = datetime.now(UTC) - timedelta(seconds=1)
    Coverage.objects.filter(state="complete", **which).update(verify_at=due)
    Mirror.objects.get(name="lake-eu").metaranges.update(verify_at=due)


def verify(lm: Deployment, rounds: int = 3) -> None:
    """Everything is looked at again, whatever is due."""
    age()
    lm.work(rounds)


def arrive(lm: Deployment) -> None:
    """Everything is replicated; what was lost stays lost."""
    replicate(lm.us_store, lm.eu_store)


def give_back(lm: Deployment, uri: str) -> None:
    """What had vanished is there again."""
    lm.eu_store.hidden.discard(uri)
    lm.work()


def damage(lm: Deployment, commit: str, path: str) -> str:
    """An object vanishes at the destination, and that is found out; gives its URI."""
    uri = lose(lm, commit, path)
    verify(lm)
    assert path in missing()
    return uri


def missing() -> list[str]:
    """The paths of what is known to be missing or wrong, each once."""
    return sorted(set(Blocker.objects.values_list("path", flat=True)))


def run(lm: Deployment, *kinds: str, holder: str = "worker-1") -> None:
    """One round of these duties, in this order."""
    for kind in kinds:
        for duty in Duty.objects.filter(kind=kind):
            lm.run(duty.pk, holder)


def page() -> MirrorStatus:
    """What the mirror's page says."""
    return mirror_status(Mirror.objects.get(name="lake-eu"))


def whys(branch: str = "main") -> list[str]:
    """Why a branch moved, the first time first."""
    return list(Promotion.objects.filter(branch=branch).order_by("pk").values_list("why", flat=True))


def unreadable(lm: Deployment, branch: str) -> list[str]:
    """What a reader of one of the mirror's branches would miss."""
    return [problem for problem in lm.torn() if problem.startswith(f"{branch}: ")]


@contextmanager
def before_call(lm: Deployment, name: str, deed: Callable[[], None]) -> Iterator[list[str]]:
    """Once, just before a call to the destination's lakeFS, something else happens; gives the moves after that."""
    plain, done, moves = getattr(lm.eu, name), list[str](), list[str]()

    def call(*given: Any, **options: Any) -> Any:
        if not done:
            done.append(name)
            deed()
            lm.eu.calls.clear()
        return plain(*given, **options)

    with mock.patch.object(lm.eu, name, call):
        yield moves
    assert done, f"{name} was not called"
    moves += [call for call in lm.eu.calls if call in ACTIONS]


def reset(lm: Deployment, commit: str) -> None:
    """The source's main is set to a commit that it had before."""
    point(lm, "main", commit)
    lm.work()


@contextmanager
def real_job(lm: Deployment) -> Iterator[None]:
    """The check job itself, a task for each range, in this process: it reads bytes and asks the source as in Spark."""

    def run_check(mirror: Mirror, work: Any, on_rows: Any) -> None:
        lm.checked.extend(work)
        settings = check_jobs.settings_of(mirror)
        handover = _Handover(on_rows, len(work))
        for range_id, bases in work:
            row = {"range_id": range_id, "base_ids": list(bases)}
            batch = pa.RecordBatch.from_pylist([row], schema=job.WORK_COLUMNS)
            for found in job.check_task([batch], settings):
                handover.take(found.to_pylist())
        handover.finish()

    with (
        mock.patch("deployment.wiring.check_jobs.run_check", run_check),
        mock.patch("spark_jobs.check.job.store_of", lambda settings: BulkStandIn(lm.eu_store)),
        mock.patch("spark_jobs.check.job.source_of", lambda settings: BulkStandIn(lm.us_store)),
    ):
        yield


@contextmanager
def an_hour_later() -> Iterator[None]:
    """What is missing has been missed for an hour: by then it is more than late."""
    before = dict(Blocker.objects.values_list("pk", "first_seen"))
    for pk, seen in before.items():
        Blocker.objects.filter(pk=pk).update(first_seen=seen - timedelta(hours=1))
    yield
    for pk, seen in before.items():
        Blocker.objects.filter(pk=pk).update(first_seen=seen)


def with_entry(lm: Deployment, parent: str, address: str, kind: AddressType, etag: str = "") -> str:
    """A commit with an entry `odd` of any address, on no branch."""
    body = b"odd"
    etag = etag or hashlib.md5(body).hexdigest()
    odd = Entry(
        path=b"odd",
        address=address,
        size=len(body),
        etag=etag,
        last_modified=Timestamp(1),
        metadata={},
        content_type="",
        address_type=kind,
    )
    place = address if kind is AddressType.FULL else f"{lm.lake.namespace}/{address}"
    lm.lake.store.put(place, body)
    return lm.lake.record_tree((parent,), lm.lake.trees[parent] | {b"odd": odd}, "odd")
