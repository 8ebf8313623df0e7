"""In-memory stand-ins of the ports, held to the same contract tests as the adapters."""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

from adapters.places.describer import Describer
from adapters.places.travel_probe import probe_travel
from adapters.s3.fast_store import ListedPage
from adapters.s3.write_probe import TRIED, Probed
from core.bringing import Side, Unbrought
from core.errors import Conflict, Corrupt, Denied, LakeMirrorError, NotFound, RemoteFailure, Unreachable
from core.exporting.deadline import Late
from core.mirroring.object_check import (
    Depth,
    Imported,
    Reason,
    Verdict,
    What,
    judge_object,
    judge_refusal,
    judge_refused,
)
from core.ports import ObjectStore
from core.replicating.merging import Listing
from core.replication.facts import Attempts, SourceObject, Status, StoreKind
from core.sweeping import Standing
from core.types import (
    BranchHead,
    Commit,
    GcRules,
    LifecycleRule,
    ObjectInfo,
    ObjectVersion,
    Page,
    PresignedUrl,
    RecordOutcome,
    ReplicationRule,
    RepositoryInfo,
    ServerInfo,
    Tag,
)
from graveler.entries import AddressType, Entry, Timestamp
from graveler.errors import FormatError
from graveler.identity import commit_id
from graveler.metarange import RangeRef, write_metarange
from graveler.ranges import read_range, write_ranges


class FakeStore:
    """Objects in a dict. `down` is raised by every call when set; `hidden` holds URIs that have not arrived.

    `refused` maps a URI to what its HEAD raises, `unreadable` to what its GET raises. `elsewhere`: of what it lacks,
    others are shown another site's.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.hidden: set[str] = set()
        self.elsewhere: set[str] = set()
        self.down: LakeMirrorError | None = None
        self.refused: dict[str, LakeMirrorError] = {}
        self.unreadable: dict[str, LakeMirrorError] = {}
        self.heads = 0
        self.bucket_versioning: dict[str, str] = {}
        self.rules: dict[str, list[ReplicationRule]] = {}
        self.lifecycle: dict[str, list[LifecycleRule]] = {}
        self.ahead = 0.0
        self.bucket_error: LakeMirrorError | None = None  # of the questions about a bucket

    def _check(self) -> None:
        if self.down is not None:
            raise self.down

    def get(self, uri: str) -> bytes:
        self._check()
        if uri in self.unreadable:
            raise self.unreadable[uri]
        if uri not in self.objects or uri in self.hidden:
            raise NotFound(f"{uri} is not there")
        return self.objects[uri]

    def md5(self, uri: str) -> str:
        return hashlib.md5(self.get(uri)).hexdigest()

    def head(self, uri: str) -> ObjectInfo | None:
        self._check()
        self.heads += 1
        if uri in self.refused:
            raise self.refused[uri]
        if uri not in self.objects or uri in self.hidden:
            return None
        data = self.objects[uri]
        return ObjectInfo(uri.split("/", 3)[3], len(data), hashlib.md5(data).hexdigest())

    def proxies(self, uri: str) -> bool | None:
        return None if self.head(uri) is not None else uri in self.elsewhere

    def presigned(self, uri: str, seconds: int) -> PresignedUrl:
        url = f"http://store/{uri.removeprefix('s3://')}?X-Amz-Expires={seconds}&X-Amz-Signature=zq-signature"
        return PresignedUrl(url, datetime.now(UTC) + timedelta(seconds=seconds))

    def list(self, prefix_uri: str) -> Iterator[ObjectInfo]:
        self._check()
        for uri in sorted(self.objects):
            if uri.startswith(prefix_uri) and (found := self.head(uri)):
                yield found

    def list_versions(self, prefix_uri: str) -> Iterator[ObjectVersion]:
        """A version's id is the hash of what it holds."""
        for found in self.list(prefix_uri):
            yield ObjectVersion(found.key, found.size, f"v-{found.etag[:8]}")

    def put(self, uri: str, data: bytes) -> None:
        self._check()
        self.objects[uri] = data

    def versioning(self, bucket_uri: str) -> str:
        return self.bucket_versioning.get(self._bucket(bucket_uri), "")

    def replication_rules(self, bucket_uri: str) -> Sequence[ReplicationRule]:
        return self.rules.get(self._bucket(bucket_uri), [])

    def lifecycle_rules(self, bucket_uri: str) -> Sequence[LifecycleRule]:
        return self.lifecycle.get(self._bucket(bucket_uri), [])

    def clock_ahead(self, bucket_uri: str) -> float:
        if isinstance(self.down, Unreachable):
            raise self.down
        return self.ahead

    def _bucket(self, uri: str) -> str:
        self._check()
        if self.bucket_error is not None:
            raise self.bucket_error
        return uri.split("/", 3)[2]


class FakeReplication:
    """What a FakeStore tells of its own replication: `away` is raised by every call while it is set, `objects` maps
    URIs to what a HEAD shows or raises; others were written an hour ago, and have no status."""

    def __init__(self, store: FakeStore) -> None:
        self.store = store
        self.away: LakeMirrorError | None = Unreachable("nobody asked it to answer")
        self.store_kind = StoreKind.AWS
        self.counted: dict[str, Attempts] = {}
        self.objects: dict[str, SourceObject | LakeMirrorError] = {}
        self.asked: list[str] = []

    def _check(self) -> None:
        if self.away is not None:
            raise self.away

    def kind(self, bucket_uri: str) -> StoreKind:
        self._check()
        return self.store_kind

    def rules(self, bucket_uri: str) -> Sequence[ReplicationRule]:
        self._check()
        return self.store.replication_rules(bucket_uri)

    def attempts(self, bucket_uri: str) -> Mapping[str, Attempts]:
        self._check()
        return self.counted

    def stands(self, uri: str) -> SourceObject | None:
        self._check()
        self.asked.append(uri)
        found = self.objects.get(uri, SourceObject(Status.ABSENT, datetime.now(UTC) - timedelta(hours=1)))
        if isinstance(found, LakeMirrorError):
            raise found
        return found if uri in self.store.objects else None


class BulkStandIn:
    """A store as the check job wants it, without listings: everything is asked for by HEAD."""

    requests = 0

    def __init__(self, store: ObjectStore) -> None:
        self.get, self.md5, self.head = store.get, store.md5, store.head

    def page(self, prefix_uri: str, after: str = "") -> Any:
        raise Denied(f"{prefix_uri} may not be listed")


class SweptStandIn(BulkStandIn):
    """The same with listings, three keys a page."""

    def __init__(self, store: FakeStore) -> None:
        super().__init__(store)
        self.store = store

    def page(self, prefix_uri: str, after: str = "") -> ListedPage:
        found = [info for info in self.store.list(prefix_uri) if info.key > after]
        some = found[:3]
        columns = [one.key for one in some], [one.size for one in some], [one.etag for one in some]
        return ListedPage(*columns, ["" for _ in some], more=len(found) > len(some))


class FakeRemover:
    """Looks at objects of a FakeStore, and deletes them. `locked`, and `written` lately, hold URIs; `refused` maps one
    to what its deletion meets."""

    def __init__(self, store: FakeStore) -> None:
        self.store = store
        self.locked: set[str] = set()
        self.lately: set[str] = set()
        self.refused: dict[str, LakeMirrorError] = {}
        self.deleted: list[str] = []

    def standing(self, uri: str) -> Standing | None:
        info = self.store.head(uri)
        modified = datetime.now(UTC) - timedelta(days=0 if uri in self.lately else 30)
        return info and Standing(info.size, info.etag, modified, uri in self.locked)

    def delete(self, uris: Sequence[str], seconds: float) -> dict[str, LakeMirrorError]:
        for uri in uris:
            if uri not in self.refused:
                self.store.objects.pop(uri, None)
                self.deleted.append(uri)
        return {uri: self.refused[uri] for uri in uris if uri in self.refused}


class FakeMover:
    """Brings objects from one FakeStore to another; `limit`: so many more until the time is up. The errors are those of
    the stores, told as adapters/s3/mover.py does."""

    def __init__(self, source: FakeStore, store: FakeStore) -> None:
        self.source, self.store = source, store
        self.limit: int | None = None
        self.stopped = False
        self.brought: list[str] = []
        self.bytes_brought = 0

    def read(self, uri: str) -> bytes:
        with self._telling(Side.SOURCE):
            return self.source.get(uri)

    def write(self, uri: str, data: bytes) -> None:
        with self._telling(Side.DESTINATION):
            self.store.put(uri, data)
            if self.store.get(uri) != data:
                raise RemoteFailure(f"other bytes than were written to {uri}")

    def shows(self, prefix_uri: str) -> bool:
        with self._telling(Side.SOURCE):
            return next(iter(self.source.list(prefix_uri)), None) is not None

    def bring(self, source: str, uri: str, size: int, etag: str = "") -> ObjectInfo:
        if self.stopped:
            raise Late
        if self.limit is not None:
            if not self.limit:
                raise Late
            self.limit -= 1
        data = self._as_wanted(source, etag)
        with self._telling(Side.DESTINATION):
            self.store.put(uri, data)
        self.brought.append(uri)
        self.bytes_brought += len(data)
        return ObjectInfo(uri.split("/", 3)[3], len(data), hashlib.md5(data).hexdigest())

    def _as_wanted(self, source: str, etag: str) -> bytes:
        data = self.read(source)
        if etag and hashlib.md5(data).hexdigest() != etag:
            raise Unbrought(Side.SOURCE, RemoteFailure(f"{source} was overwritten"))
        return data

    def allow(self, seconds: float) -> None:
        """It has all the time that `limit` leaves."""

    def pace(self, bytes_per_second: float, objects_per_second: float) -> None:
        """It takes no time."""

    def passed(self) -> int:
        return self.bytes_brought

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        """Nothing is under way."""

    @contextmanager
    def _telling(self, side: Side) -> Iterator[None]:
        try:
            yield
        except LakeMirrorError as error:
            raise Unbrought(side, error) from error


class EmptyPlace:
    """A store to export to that says that nothing is there, and takes no writes."""

    where = "http://empty"

    def page(self, prefix_uri: str, after: str = "") -> ListedPage:
        return ListedPage([], [], [], [], False)

    def clock_ahead(self, bucket_uri: str) -> float:
        return 0.0


class EmptyRulePlace:
    """A place of a replication rule in which nothing is."""

    def __init__(self, region: str, uri: str) -> None:
        self.store, self.at = EmptyPlace(), uri

    def uri(self, key: str) -> str:
        return f"{self.at}/{key}"

    def answers(self) -> None:
        """It does."""

    def clock_ahead(self) -> float:
        return 0.0

    def listing(self, after: str, *, dated: bool = False) -> Listing:
        return Listing([], False)

    def head(self, key: str) -> None:
        return None


class Undescribed:
    """What asks an empty place of its objects: its bucket has no locks."""

    def __init__(self, place: object) -> None:
        self.place = place

    def has_locks(self) -> bool:
        return False


def described_or_empty(place: Any) -> Any:
    """What asks a place of its objects; an empty one has none."""
    return Undescribed(place) if isinstance(place, EmptyRulePlace) else Describer(place)


def carried_or_taken(place: Any, **wanted: Any) -> Any:
    """A probe of what goes with bytes; an empty place refuses nothing."""
    return {} if isinstance(place, EmptyRulePlace) else probe_travel(place, **wanted)


def takes_everything(store: object, place: str, *, seconds: float) -> Probed:
    """A probe that was written, read and removed."""
    return Probed(dict.fromkeys(TRIED))


@dataclass
class FakeRepository:
    info: RepositoryInfo
    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    uncommitted: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    tags: dict[str, str] = field(default_factory=dict)


class FakeLakeFS:
    """One installation. `failing` maps a method's name to the error that its next calls raise; `calls` counts them."""

    def __init__(self) -> None:
        self.repositories: dict[str, FakeRepository] = {}
        self.failing: dict[str, LakeMirrorError] = {}
        self.after: dict[str, LakeMirrorError] = {}
        self.calls: list[str] = []
        self.info = ServerInfo("1.84.0", 0.0)
        self.gc: dict[str, GcRules] = {}  # by namespace

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failing:
            raise self.failing[name]

    def _answer(self, name: str) -> None:
        """An error that comes after the work was done."""
        if name in self.after:
            raise self.after.pop(name)

    def _repository(self, name: str) -> FakeRepository:
        if name not in self.repositories:
            raise NotFound("repository not found")
        return self.repositories[name]

    def _writable(self, name: str, force: bool) -> FakeRepository:
        repository = self._repository(name)
        if repository.info.read_only and not force:
            raise Denied("read-only repository")
        return repository

    def add_repository(self, name: str, namespace: str, *, read_only: bool = False) -> FakeRepository:
        if name in self.repositories:
            raise Conflict("error creating repository: not unique")
        info = RepositoryInfo(name, namespace, "main", int(time.time()), read_only)
        self.repositories[name] = FakeRepository(info)
        return self.repositories[name]

    def server(self) -> ServerInfo:
        self._call("server")
        return self.info

    def get_repository(self, repository: str) -> RepositoryInfo:
        self._call("get_repository")
        return self._repository(repository).info

    def list_repositories(self, *, prefix: str = "", after: str = "", amount: int = 1000) -> Page[RepositoryInfo]:
        self._call("list_repositories")
        names = [name for name in sorted(self.repositories) if name.startswith(prefix) and name > after]
        found = [self.repositories[name].info for name in names]
        return Page(found[:amount], found[amount - 1].id if len(found) > amount else "")

    def create_mirror_repository(self, *, name: str, storage_namespace: str, default_branch: str) -> RepositoryInfo:
        self._call("create_mirror_repository")
        info = self.add_repository(name, storage_namespace, read_only=True).info
        self._answer("create_mirror_repository")
        return replace(info, default_branch=default_branch)

    def delete_repository(self, repository: str) -> None:
        self._call("delete_repository")
        self._repository(repository)
        del self.repositories[repository]

    def gc_rules(self, repository: str) -> GcRules | None:
        self._call("gc_rules")
        return self.gc.get(self._repository(repository).info.storage_namespace)

    def list_branches(
        self, repository: str, *, after: str = "", amount: int = 1000, hidden: bool = True
    ) -> Page[BranchHead]:
        self._call("list_branches")
        there = self._repository(repository)
        unseen = set() if hidden else there.hidden
        heads = sorted((n, c) for n, c in there.branches.items() if n > after and n not in unseen)
        page = [BranchHead(n, c) for n, c in heads[:amount]]
        return Page(page, page[-1].name if len(heads) > amount else "")

    def get_branch(self, repository: str, branch: str) -> BranchHead:
        self._call("get_branch")
        heads = self._repository(repository).branches
        if branch not in heads:
            raise NotFound("branch not found")
        return BranchHead(branch, heads[branch])

    def log_commits(self, repository: str, commit_id: str, *, after: str = "", amount: int = 1000) -> Page[Commit]:
        self._call("log_commits")
        commits = self._repository(repository).commits
        if commit_id not in commits:
            raise NotFound("ref: not found")
        order = self._walk(commits, commit_id)
        start = order.index(after) + 1 if after else 0
        page = order[start : start + amount]
        return Page([commits[c] for c in page], page[-1] if start + amount < len(order) else "")

    @staticmethod
    def _walk(commits: Mapping[str, Commit], head: str) -> list[str]:
        seen: dict[str, None] = {}
        ahead = [head]
        while ahead:
            current = ahead.pop()
            if current not in seen:
                seen[current] = None
                ahead.extend(commits[current].parents)
        return list(seen)

    def get_commit(self, repository: str, commit_id: str) -> Commit:
        self._call("get_commit")
        commits = self._repository(repository).commits
        if commit_id not in commits:
            raise NotFound("commit: not found")
        return commits[commit_id]

    def put_commit_record(self, repository: str, commit: Commit) -> RecordOutcome:
        self._call("put_commit_record")
        there = self._writable(repository, force=True).commits
        if id_of(commit) != commit.id:
            raise Corrupt("commit id: invalid value")
        if commit.id in there:
            return RecordOutcome.EXISTS
        there[commit.id] = commit
        self._answer("put_commit_record")
        return RecordOutcome.CREATED

    def create_branch(self, repository: str, branch: str, commit_id: str, *, hidden: bool = False) -> None:
        self._call("create_branch")
        there = self._repository(repository)
        if branch in there.branches:
            raise Conflict("branch already exists: not unique")
        if branch in there.tags:
            raise Conflict("tag ID already exists: not unique")
        self._move(there, branch, commit_id)
        there.hidden.discard(branch)
        if hidden:
            there.hidden.add(branch)
        self._answer("create_branch")

    def hard_reset_branch(self, repository: str, branch: str, commit_id: str) -> None:
        self._call("hard_reset_branch")
        there = self._repository(repository)
        if branch not in there.branches:
            raise NotFound("branch not found")
        self._move(there, branch, commit_id)
        self._answer("hard_reset_branch")

    @staticmethod
    def _move(there: FakeRepository, branch: str, commit_id: str) -> None:
        if commit_id not in there.commits:
            raise NotFound("commit: not found")
        there.branches[branch] = commit_id

    def delete_branch(self, repository: str, branch: str) -> None:
        self._call("delete_branch")
        there = self._repository(repository)
        if branch == there.info.default_branch:
            raise Denied("cannot delete repository default branch")
        if branch not in there.branches:
            raise NotFound("branch not found")
        del there.branches[branch]

    def has_uncommitted(self, repository: str, branch: str) -> bool:
        self._call("has_uncommitted")
        self.get_branch(repository, branch)
        return branch in self._repository(repository).uncommitted

    def drop_uncommitted(self, repository: str, branch: str) -> None:
        self._call("drop_uncommitted")
        self._repository(repository).uncommitted.discard(branch)

    def list_tags(self, repository: str, *, after: str = "", amount: int = 1000) -> Page[Tag]:
        self._call("list_tags")
        tags = sorted((n, c) for n, c in self._repository(repository).tags.items() if n > after)
        page = [Tag(n, c) for n, c in tags[:amount]]
        return Page(page, page[-1].name if len(tags) > amount else "")

    def get_tag(self, repository: str, tag: str) -> Tag:
        self._call("get_tag")
        tags = self._repository(repository).tags
        if tag not in tags:
            raise NotFound("tag not found")
        return Tag(tag, tags[tag])

    def create_tag(self, repository: str, tag: str, commit_id: str) -> None:
        self._call("create_tag")
        there = self._repository(repository)
        if tag in there.tags or tag in there.branches:
            raise Conflict("tag already exists: not unique")
        if commit_id not in there.commits:
            raise NotFound("commit: not found")
        there.tags[tag] = commit_id
        self._answer("create_tag")

    def delete_tag(self, repository: str, tag: str) -> None:
        self._call("delete_tag")
        there = self._repository(repository)
        if tag not in there.tags:
            raise NotFound("tag not found")
        del there.tags[tag]
        self._answer("delete_tag")


def id_of(commit: Commit) -> str:
    """The id that lakeFS computes for a record."""
    return commit_id(
        committer=commit.committer,
        message=commit.message,
        metarange_id=commit.metarange_id,
        creation_date=commit.creation_date,
        metadata=commit.metadata,
        parents=commit.parents,
    )


class Lake:
    """A source repository that one can commit to: real metadata files, in a fake store."""

    def __init__(
        self, lakefs: FakeLakeFS, store: FakeStore, name: str = "lake", namespace: str = "s3://src/lake"
    ) -> None:
        self.lakefs, self.store, self.name, self.namespace = lakefs, store, name, namespace
        self.repository = lakefs.add_repository(name, namespace)
        self.trees: dict[str, dict[bytes, Entry]] = {"": {}}
        self.ranges: dict[str, list[RangeRef]] = {}
        self.count = 0
        self.clock = 1_795_000_000
        root = self._record((), "", "Repository created", {})
        self.repository.branches["main"] = root

    def commit(self, branch: str = "main", files: Mapping[str, bytes | None] | None = None, message: str = "") -> str:
        """Write files (None deletes one) and commit; gives the commit id."""
        head = self.repository.branches[branch]
        tree = dict(self.trees[head])
        for path, content in (files if files is not None else {f"f{self.count}": b"x%d" % self.count}).items():
            self._apply(tree, path, content)
        new = self.record_tree((head,), tree, message or f"commit {self.count}")
        self.repository.branches[branch] = new
        return new

    def link(self, path: str, uri: str, content: bytes) -> str:
        """Import an object that lies elsewhere, and commit; gives the commit id."""
        self.commit(files={path: content})
        return self.describe(path, address=uri, address_type=AddressType.FULL)

    def describe(self, path: str, **fields: Any) -> str:
        """Commit a file with other fields of its entry; gives the commit id."""
        head = self.repository.branches["main"]
        tree = dict(self.trees[head])
        tree[path.encode()] = replace(tree[path.encode()], **fields)
        new = self.repository.branches["main"] = self.record_tree((head,), tree, f"{path} is described anew")
        return new

    def merge(self, source: str, into: str = "main") -> str:
        """A merge commit with both heads as parents."""
        ours, theirs = self.repository.branches[into], self.repository.branches[source]
        new = self.record_tree((ours, theirs), self.trees[ours] | self.trees[theirs], f"merge {source}")
        self.repository.branches[into] = new
        return new

    def record_tree(self, parents: tuple[str, ...], tree: dict[bytes, Entry], message: str) -> str:
        """A commit record with its metadata files, on no branch."""
        refs = []
        for written in write_ranges(tree[key] for key in sorted(tree)):
            self.store.put(f"{self.namespace}/_lakefs/{written.id}", written.data)
            refs.append(RangeRef(written.id, written.min_key, written.max_key, written.count, written.estimated_size))
        metarange = write_metarange(refs)
        self.store.put(f"{self.namespace}/_lakefs/{metarange.id}", metarange.data)
        self.ranges[metarange.id] = refs
        return self._record(parents, metarange.id, message, tree)

    def _apply(self, tree: dict[bytes, Entry], path: str, content: bytes | None) -> None:
        if content is None:
            tree.pop(path.encode(), None)
            return
        self.count += 1
        address = f"data/p{self.count // 50}/{self.count:05}"
        self.store.put(f"{self.namespace}/{address}", content)
        tree[path.encode()] = Entry(
            path=path.encode(),
            address=address,
            size=len(content),
            etag=hashlib.md5(content).hexdigest(),
            last_modified=Timestamp(1_795_000_000 + self.count),
            metadata={},
            content_type="application/octet-stream",
            address_type=AddressType.RELATIVE,
        )

    def _record(self, parents: tuple[str, ...], metarange_id: str, message: str, tree: dict[bytes, Entry]) -> str:
        commits = self.repository.commits
        generation = 1 + max((commits[p].generation for p in parents), default=0)
        self.clock += 1
        record = Commit("", parents, "ada", message, self.clock, metarange_id, {}, generation, 1)
        record = replace(record, id=id_of(record))
        commits[record.id] = record
        self.trees[record.id] = tree
        return record.id

    def address_of(self, commit: str, path: str) -> str:
        """The relative address of a file in a commit."""
        return self.trees[commit][path.encode()].address

    def files_of(self, commit: str) -> list[str]:
        """Ids of the commit's metarange and ranges."""
        metarange_id = self.repository.commits[commit].metarange_id
        return [metarange_id, *(ref.id for ref in self.ranges[metarange_id])]


def replicate(
    source: FakeStore, destination: FakeStore, *, frm: str = "s3://src/lake", to: str = "s3://dst/lake"
) -> None:
    """Bring everything over, as bucket replication does; `destination.hidden` holds back."""
    for uri, data in source.objects.items():
        if uri.startswith(frm):
            destination.objects.setdefault(to + uri[len(frm) :], data)


def check_plainly(
    store: FakeStore, namespace: str, depth: str, work: Sequence[tuple[str, list[str]]], imported: str = Imported.BLOCK
) -> Iterable[dict[str, Any]]:
    """The `check` job's contract, entry by entry: a second, obvious implementation to test against."""
    for range_id, base_ids in work:
        entries, broken = _entries(store, namespace, range_id)
        known = {_object(one) for base_id in base_ids for one in _entries(store, namespace, base_id)[0]}
        looked = [one for one in entries if _is_barred(one, imported) or _object(one) not in known]
        problems = broken or list(_problems(store, namespace, depth, imported, looked))
        yield from ({"kind": "problem", "range_id": range_id, **problem} for problem in problems)
        yield {
            "kind": "range",
            "range_id": range_id,
            "entries": len(entries),
            "bytes": sum(entry.size for entry in entries),
            "looked_up": sum(not _is_barred(entry, imported) for entry in looked),
            "new_bytes": sum(entry.size for entry in looked if not _is_barred(entry, imported)),
            "s3_requests": len(entries),
            "problems": len(problems),
            "min_key": entries[0].path if entries else b"",
            "max_key": entries[-1].path if entries else b"",
            "looked": b"".join(struct.pack("<I", crc) for crc in sorted({crc32(e.address.encode()) for e in looked})),
        }


def _entries(store: FakeStore, namespace: str, range_id: str) -> tuple[list[Entry], list[dict[str, Any]]]:
    """A range's entries, or the problem with its file."""
    address = f"_lakefs/{range_id}"
    row = {"path": b"", "address": address, "full": False, "size": None, "etag": None, "detail": ""}
    try:
        return list(read_range(store.get(f"{namespace}/{address}"), expected_id=range_id)), []
    except NotFound:
        return [], [row | {"reason": "range-missing"}]
    except FormatError as error:
        return [], [row | {"reason": "range-damaged", "detail": str(error)}]
    except LakeMirrorError as error:
        reason, detail = _refused(store, namespace, error, What.RANGE)
        return [], [row | {"reason": reason, "detail": detail}]


def _refused(store: FakeStore, namespace: str, error: LakeMirrorError, what: What) -> tuple[Reason, str]:
    """What a refusal says of one key; raised if the store answers for nothing else either."""
    verdict = judge_refused(error, what)
    if verdict is None:
        raise error
    store.head(f"{namespace}/_lakemirror/mirror.json")
    return verdict


def _is_barred(entry: Entry, imported: str) -> bool:
    return not entry.relative and (imported == Imported.BLOCK or not entry.address.startswith(("s3://", "s3a://")))


def _object(entry: Entry) -> tuple[str, bool, int, str]:
    """What an entry says of its object."""
    return entry.address, not entry.relative, entry.size, entry.etag


def _problems(
    store: FakeStore, namespace: str, depth: str, imported: str, looked: Iterable[Entry]
) -> Iterator[dict[str, Any]]:
    for entry in looked:
        full = not entry.relative
        if _is_barred(entry, imported):
            verdict: Verdict = (Reason.IMPORTED, "imported")
        else:
            verdict = _judged(store, namespace, entry, Depth(depth))
        if verdict:
            fields = {"path": entry.path, "address": entry.address, "size": entry.size, "etag": entry.etag}
            yield fields | {"full": full, "reason": verdict[0], "detail": verdict[1]}


def _judged(store: FakeStore, namespace: str, entry: Entry, depth: Depth) -> Verdict:
    uri = f"{namespace}/{entry.address}" if entry.relative else entry.address
    try:
        return judge_object(store.head(uri), size=entry.size, etag=entry.etag, depth=depth)
    except LakeMirrorError as error:
        if not uri.startswith(f"{namespace}/") and not error.retryable:
            return judge_refusal(error)
        return _refused(store, namespace, error, What.OBJECT)
