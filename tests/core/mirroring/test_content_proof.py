"""Where the entry doesn't decide: the source's object, and the content."""

from __future__ import annotations

import hashlib

import pytest

from core.errors import Denied, LakeMirrorError, NotFound, RemoteFailure, Unreachable
from core.mirroring.content_proof import OWN_DESCRIPTOR, Proof, Prover, Refusals, is_sampled, tell_notes
from core.mirroring.object_check import Depth, Note, Reason, What, note_object
from core.types import ObjectInfo

HERE, THERE = "s3://dst/lake/data/a", "s3://src/lake/data/a"
BYTES = b"some bytes"
MD5 = hashlib.md5(BYTES).hexdigest()


class Store:
    """One object, with whatever ETag it claims."""

    def __init__(self, uri: str, data: bytes | None, etag: str = "", encryption: str = "") -> None:
        self.uri, self.data, self.down, self.read = uri, data, False, 0
        self.info = None if data is None else ObjectInfo("a", len(data), etag or _md5(data), encryption=encryption)

    def head(self, uri: str) -> ObjectInfo | None:
        if self.down:
            raise Unreachable("no answer")
        assert uri == self.uri
        return self.info

    def md5(self, uri: str) -> str:
        self.read += 1
        if self.head(uri) is None or self.data is None:
            raise NotFound("not there")
        return _md5(self.data)


def _md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def appeal(here: Store, there: Store, *, size: int = 10, etag: str = MD5, reason: Reason = Reason.ETAG) -> Proof:
    assert here.info
    prover = Prover(here, "s3://dst/lake", there, "s3://src/lake")
    return prover.appeal((reason, "differs"), here.info, HERE, size=size, etag=etag)


def read(here: Store, there: Store, *, etag: str = MD5) -> Proof:
    return Prover(here, "s3://dst/lake", there, "s3://src/lake").read(HERE, size=10, etag=etag)


def test_what_the_source_has_too_passes_with_a_note() -> None:
    here, there = Store(HERE, BYTES), Store(THERE, BYTES)
    assert appeal(here, there, size=99, reason=Reason.SIZE) == Proof(note=Note.ENTRY_DIFFERS)
    assert here.read == there.read == 0


@pytest.mark.parametrize("original", [b"SOME BYTES", b"longer than that", None])
def test_what_differs_from_the_source_stays_wrong_and_is_not_read(original: bytes | None) -> None:
    here, there = Store(HERE, BYTES), Store(THERE, original)
    assert appeal(here, there, etag="0" * 32).verdict == (Reason.ETAG, "differs")
    assert here.read == there.read == 0


def test_a_copy_in_other_parts_is_proven_by_its_content() -> None:
    here, there = Store(HERE, BYTES, "e" * 32 + "-3"), Store(THERE, BYTES, "f" * 32 + "-2")
    assert appeal(here, there, etag="f" * 32) == Proof(note=Note.BY_CONTENT)


def test_a_copy_in_other_parts_with_other_bytes_stays_wrong() -> None:
    here, there = Store(HERE, b"SOME BYTES", "e" * 32 + "-3"), Store(THERE, BYTES, "f" * 32 + "-2")
    assert appeal(here, there, etag="f" * 32).verdict == (Reason.ETAG, "differs")


def test_a_source_that_does_not_answer_proves_nothing() -> None:
    here, there = Store(HERE, BYTES), Store(THERE, BYTES)
    there.down = True
    verdict = appeal(here, there, etag="0" * 32).verdict
    assert verdict and verdict[0] is Reason.ETAG and "can't be asked" in verdict[1]


def test_a_destination_that_does_not_answer_is_no_verdict() -> None:
    here, there = Store(HERE, BYTES, "e" * 32 + "-3"), Store(THERE, BYTES, "f" * 32 + "-2")
    here.down = True
    with pytest.raises(Unreachable):
        appeal(here, there)


@pytest.mark.parametrize("reason", [Reason.MISSING, Reason.ARCHIVED])
def test_no_source_makes_up_for_what_cannot_be_read(reason: Reason) -> None:
    assert appeal(Store(HERE, BYTES), Store(THERE, BYTES), reason=reason).verdict == (reason, "differs")


def test_content_is_held_against_the_etag_without_asking_the_source() -> None:
    there = Store(THERE, BYTES)
    there.down = True
    assert read(Store(HERE, BYTES), there) == Proof()
    verdict = read(Store(HERE, b"SOME BYTES", MD5), there).verdict
    assert verdict and verdict[0] is Reason.CONTENT and MD5 in verdict[1]


@pytest.mark.parametrize(("etag", "encryption"), [("e" * 32 + "-2", ""), ("e" * 32, "aws:kms")])
def test_content_without_an_md5_is_held_against_the_source_s(etag: str, encryption: str) -> None:
    there = Store(THERE, BYTES)
    assert read(Store(HERE, BYTES, etag, encryption), there) == Proof()
    verdict = read(Store(HERE, b"SOME BYTES", etag, encryption), there).verdict
    assert verdict and verdict[0] is Reason.CONTENT
    assert there.read == 0  # its own ETag is an MD5


@pytest.mark.parametrize(
    ("recorded", "etag", "encryption", "only_here"),
    [
        ("e" * 32, "e" * 32 + "-2", "", True),
        ("e" * 32, "e" * 32, "aws:kms", False),
        (MD5, "e" * 32 + "-2", "", False),
        ("0" * 32, "e" * 32 + "-2", "", False),
        ("", "e" * 32 + "-2", "", False),
    ],
    ids=["here", "not known", "at the source", "nowhere", "not recorded"],
)
def test_what_may_be_the_last_one_that_is_right(recorded: str, etag: str, encryption: str, only_here: bool) -> None:
    proof = read(Store(HERE, b"SOME BYTES", etag, encryption), Store(THERE, BYTES), etag=recorded)
    assert proof.verdict and (proof.verdict[0], proof.only_here) == (Reason.CONTENT, only_here)


def test_content_that_nothing_can_be_held_against_is_told() -> None:
    here, there = Store(HERE, BYTES, "e" * 32 + "-2"), Store(THERE, None)
    assert read(here, there) == Proof(note=Note.NO_ORIGINAL)
    there.down = True
    verdict = read(here, there).verdict
    assert verdict and verdict[0] is Reason.UNPROVEN


def test_encryption_leaves_the_size_and_says_so() -> None:
    kms = ObjectInfo("a", 10, "f" * 32, encryption="aws:kms")
    assert note_object(kms, etag=MD5, depth=Depth.ETAG) is Note.BY_SIZE
    assert note_object(kms, etag="f" * 32, depth=Depth.ETAG) is None
    assert note_object(kms, etag=MD5, depth=Depth.SIZE) is None


def test_a_sample_is_about_its_share_and_each_seed_picks_others() -> None:
    uris = [f"s3://dst/lake/data/{number}" for number in range(10_000)]
    one, again, other = ({uri for uri in uris if is_sampled(uri, 0.1, seed)} for seed in (1, 1, 2))
    assert one == again != other
    assert 800 < len(one) < 1200
    assert all(is_sampled(uri, 1.0, 5) for uri in uris[:10])


def test_notes_are_counted() -> None:
    told = tell_notes([Note.BY_SIZE, Note.ENTRY_DIFFERS, Note.BY_SIZE])
    assert told == [f"2 of its objects: {Note.BY_SIZE}", f"1 of its objects: {Note.ENTRY_DIFFERS}"]


# --- whose failure ----------------------------------------------------------------------------------------------------


class Failing:
    """Fails for these keys, or for all; knows no other."""

    def __init__(self, *uris: str, error: LakeMirrorError) -> None:
        self.uris, self.error, self.asked = uris, error, list[str]()

    def head(self, uri: str) -> ObjectInfo | None:
        self.asked.append(uri)
        if uri in self.uris or not self.uris:
            raise self.error
        return None

    def get(self, uri: str) -> bytes:
        self.head(uri)
        raise NotFound("not there")


DESCRIPTOR = f"s3://dst/lake/{OWN_DESCRIPTOR}"


def test_a_key_that_fails_together_with_the_descriptor_fails_for_itself() -> None:
    store = Failing(HERE, DESCRIPTOR, error=RemoteFailure("500"))
    refusals = Refusals(store, "s3://dst/lake")
    for _ in range(2):
        assert refusals.of_key(store.error, What.OBJECT)[0] is Reason.UNREADABLE
    assert refusals.are_about(HERE, store.error)
    others = [uri for uri in store.asked if uri != DESCRIPTOR]
    assert len(set(others)) == 3 and all(uri.startswith("s3://dst/lake/_lakemirror/") for uri in others)


def test_a_store_that_answers_for_no_key_is_away() -> None:
    store = Failing(error=Unreachable("silence"))
    with pytest.raises(Unreachable):
        Refusals(store, "s3://dst/lake").of_key(store.error, What.OBJECT)
    with pytest.raises(Unreachable):
        Refusals(store, "s3://dst/lake").of_key(Denied("403"), What.OBJECT)


def test_a_descriptor_that_is_refused_with_the_key_is_the_stores_matter() -> None:
    store = Failing(HERE, DESCRIPTOR, error=Denied("403"))
    with pytest.raises(Denied):
        Refusals(store, "s3://dst/lake").of_key(store.error, What.OBJECT)
