"""Somebody who knows everything reads along: what was moved, certified, shown on the page, and said of a commit."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from core.errors import LakeMirrorError
from core.mirroring.object_check import Depth, Reason
from core.mirroring.promotion import Why
from core.mirroring.states import ASIDE, State
from graveler.ranges import read_range
from mirrors.models import Blocker, Commit, Mirror, MoveIntent, Promotion, SourceBranch, WaivedObject
from mirrors.queries.certificates import certify
from mirrors.status.mirror import mirror_status
from mirrors.status.readable_regions import places_of
from mirrors.status.tags import tag_readings
from tests.mirrors.harness import NAMESPACE
from tests.promise.looks import Looks
from tests.promise.source import Source
from tests.promise.truth import LEVELS, METADATA, Truth

UNREAD = {"missing", "archived", "unreadable", "imported", "imported-unreachable"}
"""What a waiver of an object accepts."""
CERTIFICATES = f"{NAMESPACE}/_lakemirror/certificates/"


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that was broken: which, and how."""

    kind: str
    told: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.told}"


@dataclass(slots=True)
class Books:
    """What the system knows at this moment. `open`: keys with a problem, true where it is said to be gone at both;
    `accepted`: objects that are waived and not there; `lacking`: the files of metadata that list what is gone;
    `read_wrong`: keys that a look deeper than the mirror's own has read; `sought`: those of the open ones that
    something waits for, which alone are looked for."""

    mirror: Mirror
    open: dict[str, bool]
    records: set[str]
    waived: set[str]
    accepted: set[str] = field(default_factory=set)
    lacking: set[str] = field(default_factory=set)
    read_wrong: set[str] = field(default_factory=set)
    sought: set[str] = field(default_factory=set)


def read_books() -> Books | None:
    """None when there is no mirror."""
    mirror = Mirror.objects.select_related("source").first()
    if mirror is None:
        return None
    books = Books(mirror, {}, set(), set(_waived(mirror)))
    waived_objects = set(WaivedObject.objects.filter(waiver__mirror=mirror).values_list("address", flat=True))
    for kind, holder, address, gone, reason, unneeded in mirror.blockers.order_by().values_list(
        "kind", "holder_id", "address", "gone_at_source", "reason", "unneeded"
    ):
        if kind == Blocker.Kind.OBJECT and address in waived_objects and reason in UNREAD:
            books.accepted.add(address)
        if kind == Blocker.Kind.RECORD:
            books.records.add(holder)
        else:
            key = address if kind == Blocker.Kind.OBJECT else METADATA + holder
            books.open[key] = books.open.get(key, False) or gone
            books.sought |= set() if unneeded else {key}
            books.lacking |= {METADATA + holder} if gone else set()
    if mirror.depth != Depth.CONTENT:
        read = mirror.coverage.filter(deeper=Depth.CONTENT).values("range_id")
        wrong = mirror.blockers.filter(reason=Reason.CONTENT, holder_id__in=read)
        books.read_wrong.update(wrong.order_by().values_list("address", flat=True))
    return books


def _waived(mirror: Mirror) -> Iterator[str]:
    yield from mirror.commits.filter(waiver__isnull=False).values_list("commit__sha", flat=True)


class Reader:
    """`problems` lists what must never be."""

    def __init__(self, truth: Truth, source: Source, looks: Looks, destination: Any) -> None:
        self.truth, self.source, self.looks, self.destination = truth, source, looks, destination
        self.problems: list[Broken] = []
        self.moves = 0
        self.blamable: set[tuple[str, str]] = set()  # (branch, commit) that somebody made
        self.unclaimed: set[str] = (
            set()
        )  # branches of which nothing proved that they were ours when the books were lost
        self.strays: dict[str, str] = {}
        self.lost_records: set[str] = set()  # by a restore, and nobody has looked at the destination since
        self.wiped = False  # the repository was made anew, and nobody has looked since
        self._blamed = 0

    def tell(self, kind: str, told: str) -> None:
        """Once each."""
        broken = Broken(kind, told)
        if broken not in self.problems:
            self.problems.append(broken)

    # What is known of a commit, and what was ever shown of it

    def known(self, books: Books, sha: str) -> list[str]:
        """The open problems of a commit, and of the history that it needs."""
        depth, truth = books.mirror.depth, self.truth
        lost = {key for key in truth.found if not truth.is_right(key, depth)}
        bad = books.open.keys() | lost | truth.read_wrong
        own = truth.parts(sha)
        told = [f"{key} of its own" for key in sorted(bad & own)]
        ancestry = truth.ancestry(sha)
        told += [f"the record of {one[:8]}" for one in sorted(books.records & ancestry)]
        if books.mirror.history == "head" or not bad - own:
            return told
        passing = {key for key in bad if books.open.get(key) or truth.is_gone(key)} | books.accepted
        for one in ancestry - books.waived - {sha}:
            told += [f"{key} of {one[:8]} below it" for key in sorted((bad - own - passing) & truth.parts(one))]
        return told

    def unproven(self, books: Books, sha: str, depth: str = "") -> list[str]:
        """What of a commit, and of the history that it needs, the engine has never seen whole at the destination."""
        shown, least = self.truth.shown, LEVELS[depth] if depth else 1
        told = [f"{key} of its own" for key in sorted(self.truth.parts(sha)) if shown.get(key, 0) < least]
        if books.mirror.history == "head":
            return told
        for one in self.truth.ancestry(sha) - books.waived - {sha}:
            told += [
                f"{key} of {one[:8]} below it"
                for key in sorted(self.truth.parts(one))
                if not shown.get(key)
                and key not in books.accepted
                and f"s3://src/lake/{key}" in self.truth.source.objects
            ]
        return told

    # What the engine does

    def on_move(self, there: Any, ref: str, old: str, new: str, *, tag: bool = False) -> None:
        """Inside of the very call that creates or moves a ref."""
        self.moves += 1
        name = f"tag {ref}" if tag else ref
        books = read_books()
        if books is None:
            return self.tell("moved-without-mirror", name)
        self.truth.note_found(books.open)
        self.truth.note_read_wrong(books.read_wrong)
        mirror = books.mirror
        what = f"{name} from {old[:8] or 'nothing'} to {new[:8]}"
        if mirror.state != Mirror.State.ACTIVE or mirror.paused or mirror.source.frozen_reason:
            self.tell("moved-although-held", f"{what}: {mirror.state}, paused {mirror.paused}")
        waived = ["it is waived"] if new in books.waived else []
        if problems := self.known(books, new) + waived:
            self.tell("moved-to-known-damaged", f"{what}: {'; '.join(problems[:3])}")
        elif problems := self.unproven(books, new, mirror.depth):
            self.tell("moved-to-unproven", f"{what}: {'; '.join(problems[:3])}")
        torn = {one for one in self.truth.ancestry(new) if one not in there.commits} - self.lost_records
        if torn:
            self.tell("moved-over-lost-records", f"{what}: {', '.join(sorted(one[:8] for one in torn)[:3])}")
        if tag and new not in self.source.tagged[ref]:
            self.tell("moved-elsewhere", f"{what}, which the source's never named")
        if not tag:
            was = "" if (ref, old) in self.blamable else old  # where somebody put it binds us to nothing
            for problem in self.source.misled(ref, was, new):
                self.tell("moved-elsewhere", problem)
        return None

    def on_delete(self, ref: str, *, tag: bool, certified: str = "") -> None:
        """Inside of the very call that deletes a ref; `certified` is what a branch's certificate tells of then."""
        if certified:  # somebody may make a branch of that name: after a rebuild it would pass for ours
            self.tell("deleted-under-its-certificate", f"branch {ref}, certified at {certified[:8]}")
        gone = MoveIntent.objects.filter(name=ref, is_tag=tag, to_commit="", why=Why.GONE)
        if gone.exists() and (tag, ref) not in self.source.deleted:
            self.tell("deleted-although-there", f"{'tag' if tag else 'branch'} {ref}, which the source never deleted")

    def on_write(self, uri: str, data: bytes) -> None:
        """A file that is just being put at the destination."""
        if not uri.startswith(CERTIFICATES):
            return
        books, told = read_books(), json.loads(data)
        if told.get("retired"):
            return None
        sha = told["commit"]
        if books is None:
            return self.tell("certified-wrongly", "without a mirror")
        return self._check_certificate(books, sha, "the certificate in the store")

    def _check_certificate(self, books: Books, sha: str, which: str) -> None:
        waived = ["it is waived"] if sha in books.waived else []
        problems = self.known(books, sha) + waived or self.unproven(books, sha, books.mirror.depth)
        if problems:
            self.tell("certified-wrongly", f"{which} of {sha[:8]}: {'; '.join(problems[:3])}")

    # What the system says

    def read_along(self, ask_for: str = "") -> None:
        """After each step; `ask_for` is a commit that somebody asks the API about."""
        books = read_books()
        self._read_strays()
        if books is None:
            return
        self.truth.note_found(books.open)
        self.truth.note_read_wrong(books.read_wrong)
        self._read_blame()
        if self.wiped:
            return
        self._read_page(books)
        self._read_tags(books)
        if ask_for and Commit.objects.filter(sha=ask_for).exists():
            self._ask(books, ask_for)

    def _read_page(self, books: Books) -> None:
        page = mirror_status(books.mirror)
        for branch in page.branches:
            if branch.state in ASIDE:
                continue
            says = branch.state is State.UP_TO_DATE
            if not (says or page.state is State.UP_TO_DATE):
                continue
            which = (
                f"{branch.name} at {branch.mirror_head[:8] or 'nothing'}" if says else f"the mirror of {branch.name}"
            )
            if branch.mirror_head != branch.source_head:
                self.tell("page-flatters", f"{which}: the source has {branch.source_head[:8]}")
            elif says and (seen := self.looks.misses("list_branches", branch.name, branch.mirror_head)):
                self.tell("page-flatters", f"{which}: the source said {seen}")
            elif problems := self.known(books, branch.mirror_head):
                self.tell("page-hides-damage", f"{which}: {'; '.join(problems[:3])}")
            elif problems := self.unproven(books, branch.mirror_head):
                self.tell("page-trusts-unproven", f"{which}: {'; '.join(problems[:3])}")

    def _read_tags(self, books: Books) -> None:
        for tag in tag_readings(books.mirror, amount=100):
            if tag.status != State.UP_TO_DATE.word:
                continue
            which = f"the tag {tag.name} at {tag.mirror_commit[:8]}"
            if seen := self.looks.misses("list_tags", tag.name, tag.mirror_commit):
                self.tell("page-flatters", f"{which}: the source said {seen}")
            elif problems := self.known(books, tag.mirror_commit):
                self.tell("page-hides-damage", f"{which}: {'; '.join(problems[:3])}")
            elif problems := self.unproven(books, tag.mirror_commit):
                self.tell("page-trusts-unproven", f"{which}: {'; '.join(problems[:3])}")

    def read_unseen(self, listing: str) -> None:
        """Nobody could list the destination's branches, or its tags, for hours: nothing that was seen in one is said to
        be well."""
        books = read_books()
        if books is None or (listing == "list_tags" and not books.mirror.tags):
            return
        page = mirror_status(books.mirror)
        refs = [("the mirror", page.state)]
        if listing == "list_branches":
            refs += [(branch.name, branch.state) for branch in page.branches]
        for name, state in refs:
            if state is State.UP_TO_DATE:
                self.tell("page-trusts-unseen", f"{name}, and {listing} was refused for hours")
        for tag in tag_readings(books.mirror, amount=100):
            if tag.status == State.UP_TO_DATE.word:
                self.tell("page-trusts-unseen", f"the tag {tag.name}, and {listing} was refused for hours")

    def read_unchecked(self) -> None:
        """No check has ended for hours: nothing is said to be whole now."""
        if books := read_books():
            page = mirror_status(books.mirror)
            for name, state in [("the mirror", page.state), *((one.name, one.state) for one in page.branches)]:
                if state is State.UP_TO_DATE:
                    self.tell("page-trusts-unchecked", f"{name}, and no check has ended for hours")

    def read_kept(self) -> None:
        """What the source has deleted can't be deleted here, however often that is tried."""
        books, there = read_books(), self.destination.repositories.get("lake-eu")
        if books is None or there is None or mirror_status(books.mirror).state is not State.UP_TO_DATE:
            return
        ours = books.mirror.branches.filter(stray=False).values_list("name", flat=True)
        kept = [name for name in ours if name in books.mirror.selection and name != there.info.default_branch]
        tags = books.mirror.tag_rows.filter(stray=False).values_list("name", flat=True) if books.mirror.tags else []
        left = [name for name in kept if name in there.branches and name not in self.source.heads]
        left += [f"the tag {name}" for name in tags if name in there.tags and name not in self.source.tags]
        if left:
            self.tell("page-flatters", f"the mirror, although {', '.join(left)} can't be deleted")

    def _ask(self, books: Books, sha: str) -> None:
        _, places = places_of([books.mirror], sha)
        for place in places:
            if place.role == "source" and place.readable.answer and books.lacking & self.truth.parts(sha):
                self.tell("regions-hide-damage", f"{sha[:8]} is said to be readable at its source")
            if place.role == "mirror" and place.readable.answer and (problems := self.known(books, sha)):
                self.tell("regions-hide-damage", f"{sha[:8]} is said to be readable: {'; '.join(problems[:3])}")
        try:
            certify(books.mirror, Commit.objects.get(repository=books.mirror.source_id, sha=sha))
        except (LakeMirrorError, Commit.DoesNotExist):
            return
        self._check_certificate(books, sha, "the certificate asked for")

    def _read_blame(self) -> None:
        rows = Promotion.objects.filter(pk__gt=self._blamed).order_by("pk")
        for pk, why, branch, commit in rows.values_list("pk", "why", "branch", "to_commit"):
            self._blamed = pk
            ours = (branch, commit) not in self.blamable and branch not in self.unclaimed
            if why == Why.FOREIGN and ours:
                self.tell("blamed-wrongly", f"somebody is said to have put {branch} to {commit[:8] or 'nothing'}")

    def forget_books(self) -> None:
        """The tables are empty: keys begin anew."""
        self.blame_from(0)

    def blame_from(self, last: int) -> None:
        """Promotions up to this key were read."""
        self._blamed = last

    def _read_strays(self) -> None:
        there = self.destination.repositories.get("lake-eu")
        for name, commit in list(self.strays.items()):
            if there is None or name in self.source.heads:
                del self.strays[name]
            elif there.branches.get(name) != commit:
                self.tell(
                    "foreign-deleted",
                    f"{name}, which somebody made at {commit[:8]}, is at {there.branches.get(name, 'nothing')[:8]}",
                )

    # In the end

    def unfound(self) -> list[str]:
        """What heads lack although everything was checked again: nobody knows of it."""
        books = read_books()
        if books is None or books.mirror.state != Mirror.State.ACTIVE:
            return []
        told = []
        for branch in books.mirror.branches.filter(stray=False):
            metadata = {key for key in self.truth.parts(branch.head) if key.startswith(METADATA)}
            if books.open.keys() & metadata or not books.mirror.commits.filter(commit__sha=branch.head).exists():
                continue  # what a file lists that can't be read, or a commit that nobody has, can't be looked for
            known = books.open.keys() | self._in_open_ranges(books.mirror, metadata)
            for key in self.truth.wrong(branch.head, books.mirror.depth):
                if key not in known:
                    told.append(f"{key}, which {branch.name} at {branch.head[:8]} needs")
        return told

    def _in_open_ranges(self, mirror: Mirror, metadata: set[str]) -> set[str]:
        """Ranges of which something is missing, and what they list: they are looked through once that is there."""
        ids = [key.removeprefix(METADATA) for key in metadata]
        rows = mirror.coverage.filter(range_id__in=ids, state="waiting", problems__gt=0)
        files = {one: self.truth.originals[METADATA + one] for one in rows.values_list("range_id", flat=True)}
        listed = (read_range(data, expected_id=one, file=one) for one, data in files.items())
        return {entry.address for entries in listed for entry in entries} | {METADATA + one for one in files}

    def unreached(self) -> list[str]:
        """Branches and tags that are not where the source has them, although nothing stands in their way."""
        books = read_books()
        there = self.destination.repositories.get("lake-eu")
        if books is None or there is None:
            return ["there is no mirror"]
        told, depth = [], books.mirror.depth
        for name, head in self.source.heads.items():
            if name in books.mirror.selection and there.branches.get(name) != head and self._can_be_shown(books, head):
                told.append(f"{name} is at {there.branches.get(name, 'nothing')[:8]} instead of {head[:8]}")
        strays = set(books.mirror.tag_rows.filter(stray=True).values_list("name", flat=True))
        left_alone = self.unclaimed & strays  # nobody knows any more that we made them
        for name, head in self.source.tags.items() if books.mirror.tags else ():
            if name in left_alone:
                continue
            if there.tags.get(name) != head and self._can_be_shown(books, head) and name not in there.branches:
                told.append(f"the tag {name} is at {there.tags.get(name, 'nothing')[:8]} instead of {head[:8]}")
        told += [
            f"{key} is still said to be missing"
            for key, gone in books.open.items()
            if not gone and key in books.sought and self.truth.is_right(key, depth)
        ]
        return told + self._not_said(books)

    def held_up(self, refused: Collection[str]) -> list[str]:
        """Branches that are not where the source has them, although they are not built on records that are refused."""
        books, there = read_books(), self.destination.repositories.get("lake-eu")
        return [
            f"{name} is at {there.branches.get(name, 'nothing')[:8]} instead of {head[:8]}, beside refused records"
            for name, head in self.source.heads.items()
            if books and there and name in books.mirror.selection and there.branches.get(name) != head
            if self._can_be_shown(books, head) and self.truth.ancestry(head).isdisjoint(refused)
        ]

    def _can_be_shown(self, books: Books, head: str) -> bool:
        """Whether a head is whole: what is gone at both sides never comes back."""
        return not self.truth.wrong(head, books.mirror.depth) and head not in books.waived

    def _not_said(self, books: Books) -> list[str]:
        """Branches that stand where they should, of which the page says something else."""
        page = mirror_status(books.mirror)
        live = set(SourceBranch.objects.filter(gone_at=None).values_list("name", flat=True))
        return [
            f"{branch.name} is whole, and the page says {branch.state}: {branch.sentence}"
            for branch in page.branches
            if branch.state not in (*ASIDE, State.UP_TO_DATE)
            and branch.name in live & self.source.heads.keys() - self.strays.keys()
            and self._can_be_shown(books, branch.source_head)
        ]
