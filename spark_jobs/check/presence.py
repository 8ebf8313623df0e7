"""Are these objects at the destination? LIST where many are wanted side by side, HEAD where few are.

A listing alone never condemns: whatever it lacks or shows as different is asked for once more by HEAD.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from adapters.s3.fast_store import ListedPage
from core.errors import LakeMirrorError, NotFound
from core.mirroring.content_proof import Proof, Prover, Refusals, is_sampled
from core.mirroring.object_check import Depth, Note, is_plain, judge_object, note_object
from core.types import ObjectInfo

SEGMENT = 5000
"""So many wanted keys of one partition are looked for in one go; several go at once."""

Seen = ObjectInfo | Proof | None
"""What is known of an address: an object, a definite 404, or what it says of it that the store refuses to tell."""

# A listing does not tell whether the object has moved on to an archive tier.
_HIDDEN_TIERS = {"INTELLIGENT_TIERING"}

_PASSED, _PLAIN = Proof(), Proof()


class BulkStore(Protocol):
    """What looking at many objects needs of a store. `requests` counts what was sent."""

    requests: int

    def get(self, uri: str) -> bytes: ...
    def md5(self, uri: str) -> str: ...
    def head(self, uri: str) -> ObjectInfo | None: ...
    def page(self, prefix_uri: str, after: str = "") -> ListedPage: ...


class Expected(NamedTuple):
    """An object as an entry describes it."""

    uri: str
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class Looker:
    """Looks at objects of one store. `page_worth`: as many HEADs as one page of LIST may cost.

    `refusals` judges of what the store refuses to tell; without it every refusal is raised.
    Where a `prover` is given it has the last word on mismatches and, at depth `content`, reads a share of the objects.
    """

    store: BulkStore
    pool: ThreadPoolExecutor
    depth: Depth = Depth.ETAG
    page_worth: int = 20
    refusals: Refusals | None = None
    prover: Prover | None = None
    sample: float = 1.0
    sample_seed: int = 0

    def proofs(self, expected: Sequence[Expected]) -> list[Proof]:
        """For each object whether it is there as expected, in their order. Raises what concerns the whole store."""
        seen, proofs = self._look(expected)
        prover = self.prover
        if prover is None:
            return proofs
        # Ranges of one history name the same objects over and over: what has to be read is read once for all of them.
        open_ones = {
            entry: (proof, info)
            for entry, proof in zip(expected, proofs, strict=True)
            if isinstance(info := seen.get(entry.uri), ObjectInfo) and (proof.verdict or self._is_read(entry))
        }
        if not open_ones:
            return proofs
        found = self.pool.map(lambda one: self._settle(prover, one, *open_ones[one]), open_ones)
        settled = dict(zip(open_ones, found, strict=True))
        return [settled.get(entry, proof) for entry, proof in zip(expected, proofs, strict=True)]

    def judge(self, info: ObjectInfo, entry: Expected) -> Proof:
        """Whether an object that was just written there is the one that is expected."""
        proof = self._judged(info, entry)
        if self.prover is not None and (proof.verdict or self._is_read(entry)):
            return self._settle(self.prover, entry, proof, info)
        return proof

    def _look(self, expected: Sequence[Expected]) -> tuple[dict[str, Seen], list[Proof]]:
        """What the store says of each address, and what that says of each object."""
        seen, sure = self._glance(dict.fromkeys(entry.uri for entry in expected))
        proofs = [self._judged(seen.get(entry.uri), entry) for entry in expected]
        doubtful = {
            entry.uri
            for entry, proof in zip(expected, proofs, strict=True)
            if proof is not _PLAIN and (proof.verdict or _hides(seen.get(entry.uri))) and entry.uri not in sure
        }
        if doubtful:
            seen.update(self._heads(doubtful))
            proofs = [self._judged(seen.get(entry.uri), entry) for entry in expected]
        return seen, proofs

    def _judged(self, info: Seen, entry: Expected) -> Proof:
        if isinstance(info, Proof):
            return info
        if info is not None and is_plain(info, entry.size, entry.etag):
            return _PLAIN
        verdict = judge_object(info, size=entry.size, etag=entry.etag, depth=self.depth)
        note = None if verdict or info is None else note_object(info, etag=entry.etag, depth=self.depth)
        return Proof(verdict, note) if verdict or note else _PASSED

    def _is_read(self, entry: Expected) -> bool:
        return self.depth is Depth.CONTENT and is_sampled(entry.uri, self.sample, self.sample_seed)

    def _settle(self, prover: Prover, entry: Expected, proof: Proof, info: ObjectInfo) -> Proof:
        """What the source and the content say where the entry doesn't decide, or where the depth asks for more."""
        if proof.verdict:
            proof = prover.appeal(proof.verdict, info, entry.uri, size=entry.size, etag=entry.etag)
        if proof.verdict or proof.note is Note.BY_CONTENT or not self._is_read(entry):
            return proof
        content = prover.read(entry.uri, size=entry.size, etag=entry.etag)
        return content if content != Proof() or proof.note is Note.BY_SIZE else proof

    def _glance(self, uris: Iterable[str]) -> tuple[dict[str, Seen], set[str]]:
        """What is known of each address at first sight, and which of that is sure."""
        few, segments = self._plan(uris)
        seen: dict[str, Seen] = {}
        for shown, remaining in self.pool.map(lambda segment: self._scan(*segment), segments):
            seen.update(shown)
            few += remaining
        seen.update(self._heads(few))
        return seen, set(few)

    def _plan(self, uris: Iterable[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
        """(addresses for HEAD, segments of a partition for LIST)."""
        partitions: dict[str, list[str]] = defaultdict(list)
        for uri in uris:
            partitions[uri[: uri.rindex("/") + 1]].append(uri)
        few: list[str] = []
        segments: list[tuple[str, list[str]]] = []
        for partition, wanted in sorted(partitions.items()):
            wanted.sort()
            if len(wanted) < self.page_worth:
                few += wanted
            else:
                segments += [(partition, wanted[at : at + SEGMENT]) for at in range(0, len(wanted), SEGMENT)]
        return few, segments

    def _heads(self, uris: Iterable[str]) -> Iterator[tuple[str, Seen]]:
        addresses = list(uris)
        return zip(addresses, self.pool.map(self._head, addresses), strict=True)

    def _head(self, uri: str) -> Seen:
        try:
            return self.store.head(uri)
        except LakeMirrorError as error:
            if self.refusals is None:
                raise
            return Proof(self.refusals.of_object(uri, error))

    def _may_be_asked_singly(self, partition: str, error: LakeMirrorError) -> bool:
        """Whether a listing that failed leaves it to HEADs to tell."""
        return isinstance(error, NotFound) or (self.refusals is not None and self.refusals.are_about(partition, error))

    def _scan(self, partition: str, wanted: list[str]) -> tuple[dict[str, ObjectInfo], list[str]]:
        """(what a listing shows of these sorted addresses, those that are cheaper to ask for one by one).

        Jumps from wanted key to wanted key; gives up listing after two pages that held too few of them.
        """
        bucket = partition[: partition.index("/", partition.index("://") + 3) + 1]
        shown: dict[str, ObjectInfo] = {}
        after, poor = "", 0
        while wanted:
            if len(wanted) < self.page_worth or poor == 2:
                return shown, wanted
            after = max(after, wanted[0][len(bucket) : -1])
            try:
                page = self.store.page(partition, after)
            except LakeMirrorError as error:
                if self._may_be_asked_singly(partition, error):
                    return shown, wanted
                raise
            covered = bisect_right(wanted, bucket + page.keys[-1]) if page.more and page.keys else len(wanted)
            shown.update(_shown(page, bucket, set(wanted[:covered])))
            poor = poor + 1 if covered < self.page_worth else 0
            after, wanted = page.keys[-1] if page.keys else after, wanted[covered:]
        return shown, []


def _hides(info: Seen) -> bool:
    """Whether it is of a listing that does not tell all."""
    return isinstance(info, ObjectInfo) and info.storage_class in _HIDDEN_TIERS


def _shown(page: ListedPage, bucket: str, wanted: set[str]) -> Iterator[tuple[str, ObjectInfo]]:
    for key, size, etag, storage_class in zip(page.keys, page.sizes, page.etags, page.storage_classes, strict=True):
        if bucket + key in wanted:
            yield bucket + key, ObjectInfo(key, size, etag, storage_class)
