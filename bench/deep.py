"""One mirror with very much to tell: a million things that it lacks, or a hundred thousand commits.

`python bench/deep.py [--blockers 1000000] [--commits 100000] [--requests 5]` fills real tables (SQLite, in a folder of
its own), then asks for the pages and the API's lists by Django's own client, as `pages.py` does. Nothing here fails on
a slow machine.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from fleet import Fleet, make_id
from local_deployment import fresh_database
from pages import measure, sign_in

KEPT = 1000
"""Things of one range that have names: as many as LakeMirror keeps."""
MIRROR = "/mirrors/lake-0001/"
API = "/service/replication/v1/repositories/source-0001/mirrors/lake-0001"
LACKING = {
    "mirror": MIRROR,
    "list": "/mirrors/",
    "backlog": f"{MIRROR}backlog/",
    "backlog, one reason": f"{MIRROR}backlog/?reason=size-differs",
    "backlog, one folder": f"{MIRROR}backlog/?prefix=orders/day=003/",
    "API: mirror": API,
    "API: by folder": f"{API}/blockers?group_by=prefix",
    "API: one by one": f"{API}/blockers",
}
OF_COMMITS = {
    "mirror": MIRROR,
    "commits": f"{MIRROR}commits/",
    "commits, one branch": f"{MIRROR}commits/?branch=branch-00",
    "API: commits": f"{API}/commits",
}


def store_blockers(fleet: Fleet, number: int) -> None:
    """Ranges that lack a thousand objects each, a tenth of which ten ranges share; all commits that wait need them."""
    from mirrors.models import Blocker, Coverage, MirrorCommit

    mirror, ranges = fleet.mirrors[1], [make_id(f"lacking {n}") for n in range(number // KEPT)]
    Coverage.objects.bulk_create(
        Coverage(mirror=mirror, range_id=one, state="waiting", depth="etag", problems=KEPT, checked_at=fleet.now)
        for one in ranges
    )
    for n, holder in enumerate(ranges):
        Blocker.objects.bulk_create(_things(fleet, n, holder))
    MirrorCommit.objects.filter(mirror=mirror, data="waiting").update(waits_for=ranges[:100])


def _things(fleet: Fleet, n: int, holder: str) -> Iterator[Any]:
    from mirrors.models import Blocker

    for part in range(KEPT):
        key = make_id(f"object {n} {part}" if part >= KEPT // 10 else f"object {n // 10} {part} shared")
        yield Blocker(
            mirror=fleet.mirrors[1],
            kind="object",
            holder_id=holder,
            key=key,
            address=f"data/{key[:20]}",
            path=f"orders/day={n % 365:03}/part-{part:05}.parquet",
            size=1_000_000,
            reason="missing" if part % 5 else "size-differs",
            gone_at_source=part % 50 == 0,
            first_seen=fleet.ago(600),
            look_at=fleet.now + timedelta(seconds=30),
        )


def store_commits(fleet: Fleet, number: int) -> tuple[int, str]:
    """A long line on one branch, all but three of it at the mirror; gives the key and the id of one in its middle."""
    from mirrors.models import Candidate, Commit, MirrorBranch, MirrorCommit, SourceBranch

    mirror, source = fleet.mirrors[1], fleet.sources[1]
    branch = SourceBranch.objects.get(repository=source, name="branch-00")
    commits = Commit.objects.bulk_create(
        (
            Commit(
                repository=source,
                sha=make_id(f"deep {n}"),
                parents=[make_id(f"deep {n - 1}")] if n else [],
                message="nightly load",
                creation_date=1_790_000_000 + n,
                generation=n + 1,
                version=1,
                seen_at=fleet.ago(number - n),
            )
            for n in range(number)
        ),
        batch_size=5000,
    )
    Candidate.objects.bulk_create(
        (Candidate(branch=branch, position=10 + n, commit=one, seen_at=one.seen_at) for n, one in enumerate(commits)),
        batch_size=5000,
    )
    MirrorCommit.objects.bulk_create(
        (
            MirrorCommit(
                mirror=mirror,
                commit=one,
                record="accepted",
                data="complete" if n < number - 3 else "unknown",
                history=True,
                promoted_at=fleet.now if n < number - 3 else None,
            )
            for n, one in enumerate(commits)
        ),
        batch_size=5000,
    )
    SourceBranch.objects.filter(pk=branch.pk).update(head=commits[-1].sha, position=9 + number)
    MirrorBranch.objects.filter(mirror=mirror, name=branch.name).update(head=commits[-4].sha, position=6 + number)
    middle = commits[number // 2]
    return middle.pk, middle.sha


def measure_csv(client: Any) -> str:
    """A line: all blockers as a file, and by how much that let the process grow."""
    before, used, sent = _peak(), time.process_time(), 0
    for chunk in client.get(f"{API}/blockers?format=csv").streaming_content:
        sent += len(chunk)
    took, grew = time.process_time() - used, _peak() - before
    return f"{sent:,} bytes in {took:.0f} s of the processor; the process grew by {grew} MB"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blockers", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=5)
    given = parser.parse_args(arguments)
    with fresh_database():
        fleet = Fleet(20, 50, rows=0)
        fleet.store()
        client = sign_in()
        key, sha = store_commits(fleet, given.commits)
        deep = {"commits, deep": f"{MIRROR}commits/?after={key}", "a commit's page": f"{MIRROR}commits/{sha[:12]}/"}
        _measure_all(fleet, client, f"{given.commits:,} commits", OF_COMMITS | deep, given.requests)
        store_blockers(fleet, given.blockers)
        _measure_all(fleet, client, f"{given.blockers:,} things lacking", LACKING, given.requests)
        print(f"{'CSV':20} {measure_csv(client)}")


def _measure_all(fleet: Fleet, client: Any, what: str, pages: dict[str, str], requests: int) -> None:
    fleet.look_again()
    print(what)
    for name, path in pages.items():
        client.get(path)
        print(f"{name:20} {measure(client, path, requests)}", flush=True)


if __name__ == "__main__":
    main()
