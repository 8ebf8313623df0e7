"""A look at an object that is away puts in question the ranges that name it, and no others whose checksums are alike:
whoever may stage an entry chooses its address. The numbers are those of docs/promotion.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from core.errors import Unreachable
from core.mirroring.doubt import address_crc
from mirrors.models import Coverage, Mirror
from mirrors.services.locate import suspects
from mirrors.services.locate.locate import object_locate
from rbac.models import User
from tests.mirroring.test_found_by_breaking import uri_of
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    suspects.forget()
    yield
    suspects.forget()


def alike(address: str) -> str:
    """Another address with the same CRC-32: of 64 letters each is `a` or `b`, and flips bits of the checksum."""
    plain = "data/chosen/" + "a" * 64
    basis: dict[int, tuple[int, int]] = {}
    for place in range(64):
        flipped = plain[: 12 + place] + "b" + plain[13 + place :]
        bits, places = address_crc(flipped) ^ address_crc(plain), 1 << place
        while bits and bits.bit_length() in basis:
            other = basis[bits.bit_length()]
            bits, places = bits ^ other[0], places ^ other[1]
        if bits:
            basis[bits.bit_length()] = bits, places
    left, chosen = address_crc(address) ^ address_crc(plain), 0
    while left:
        bits, places = basis[left.bit_length()]
        left, chosen = left ^ bits, chosen ^ places
    return "data/chosen/" + "".join("b" if chosen >> place & 1 else "a" for place in range(64))


def look(owner: User, ref: str, path: str) -> None:
    """Somebody asks for it, whether anybody has it or not."""
    with suppress(Unreachable):
        object_locate(actor=owner, repository="lake", source_region="us-east-1", ref=ref, path=path, prefer="eu-west-1")


def in_question() -> set[str]:
    """Ranges that were complete and are looked through before they count again."""
    return set(Coverage.objects.filter(doubt="whole").values_list("range_id", flat=True))


def range_of(lm: Deployment, commit: str) -> str:
    [_, range_id] = lm.lake.files_of(commit)
    return range_id


def with_a_chosen_address(lm: Deployment) -> str:
    """A commit that is shown; then somebody stages an entry whose address has the checksum of one of its objects, and
    the object of which is nowhere. Gives the first commit."""
    first = lm.lake.commit(files={"a": b"1", "c": b"3"})
    lm.arrive()
    lm.work(3)
    tree = dict(lm.lake.trees[first])
    tree[b"b"] = replace(tree[b"a"], path=b"b", address=alike(tree[b"a"].address))
    lm.lake.repository.branches["main"] = lm.lake.record_tree((first,), tree, "staged")
    lm.arrive()
    lm.work(3)
    assert (lm.head(), Coverage.objects.get(range_id=range_of(lm, first)).state) == (first, "complete")
    return first


def test_244_an_address_that_was_chosen_for_its_checksum_puts_nothing_else_in_question(
    lm: Deployment, owner: User
) -> None:
    with_a_chosen_address(lm)
    before = Mirror.objects.get().facts_epoch
    for _ in range(2):
        look(owner, "main", "b")
    assert in_question() == set()
    assert Mirror.objects.get().facts_epoch == before


def test_244_a_range_is_read_once_for_an_address_however_often_somebody_looks(lm: Deployment, owner: User) -> None:
    with_a_chosen_address(lm)
    with mock.patch.object(suspects, "names_address", wraps=suspects.names_address) as reads:
        for _ in range(3):
            look(owner, "main", "b")
    assert reads.call_count == 1


def test_244_nor_is_a_range_that_names_it_no_more(lm: Deployment, owner: User) -> None:
    """It was built on one that does."""
    first = lm.lake.commit(files={"a": b"1", "b": b"2", "c": b"3"})
    lm.arrive()
    lm.work(3)
    second = lm.lake.commit(files={"b": None})
    lm.arrive()
    lm.work(3)
    assert lm.head() == second
    lm.eu_store.hidden.add(uri_of(lm, first, "b"))
    look(owner, first, "b")
    assert in_question() == {range_of(lm, first)}


def test_241_a_range_that_was_built_on_one_that_names_it_and_names_it_still_is(lm: Deployment, owner: User) -> None:
    first = lm.lake.commit(files={"a": b"1"})
    lm.arrive()
    lm.work(3)
    second = lm.lake.commit(files={"z": b"2"})
    lm.arrive()
    lm.work(3)
    lm.eu_store.hidden.add(uri_of(lm, first, "a"))
    look(owner, first, "a")
    assert in_question() == {range_of(lm, first), range_of(lm, second)}


@pytest.mark.parametrize("how", ["no store gives it", "no time"])
def test_241_what_cant_be_read_may_name_it(
    lm: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    first = with_a_chosen_address(lm)
    range_id = range_of(lm, first)
    plain = suspects.names_address

    def unread(*about: Any) -> bool:
        if about[1] == range_id:
            raise Unreachable("no answer")
        return plain(*about)

    if how == "no time":
        monkeypatch.setattr(suspects, "SECONDS", 0.0)
        monkeypatch.setattr(suspects, "names_address", mock.Mock(side_effect=Unreachable("late")))
    else:
        monkeypatch.setattr(suspects, "names_address", unread)
    look(owner, "main", "b")
    assert in_question() == {range_id}
    assert f"{NAMESPACE}/_lakefs/{range_id}" in lm.eu_store.objects
