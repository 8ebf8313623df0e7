"""Rules that lead both ways, in a ring, in a mesh: the newest object comes to be everywhere, and nothing goes round."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import Conflict, Invalid, LakeMirrorError, NotFound
from core.replicating.eligible import is_own
from core.replicating.retries import DAILY
from core.replicating.stamps import STAMP_HEADER
from core.replicating.wishes import RuleWish, TargetWish
from db import clock
from rbac.models import User
from replication.engine.looking import looker_of
from replication.engine.upstream import ways_to
from replication.models import Link, OpenObject, Rule
from replication.services.rules import rule_create
from replication.status.objects import look_at
from tests.replication.test_carrying import coded
from tests.replication.test_passes import dry_run, rows_of, through
from tests.replication.world import AWAY, FAR, HOME, World, silent

pytestmark = pytest.mark.django_db

ENDS = {HOME: "src", AWAY: "out", FAR: "two"}
PAIR = [(HOME, AWAY), (AWAY, HOME)]
RING = [(HOME, AWAY), (AWAY, FAR), (FAR, HOME)]
MESH = [(one, other) for one in ENDS for other in ENDS if one != other]


class Ends:
    """Buckets of several regions, and the rules between them."""

    def __init__(self, w: World, ways: Sequence[tuple[str, str]], **more: object) -> None:
        self.w, self.regions = w, sorted({one for way in ways for one in way})
        for source in self.regions:
            targets = [(to, f"s3://{ENDS[to]}") for of, to in ways if of == source]
            if targets:
                w.rule(*targets, name=source, region=source, uri=f"s3://{ENDS[source]}", conflict="newest", **more)

    def put(self, region: str, key: str, data: str) -> None:
        """Somebody writes there, now."""
        bucket, store = ENDS[region], self.w.stores[region]
        store.put_plainly(bucket, key, data.encode())
        store.modified[bucket, key] = clock.now()

    def there(self, region: str) -> dict[str, str]:
        return {key: data.decode() for key, data in self.w.there(region, ENDS[region]).items()}

    @property
    def written(self) -> int:
        """How often anything was copied anywhere."""
        written = [key for region in self.regions for _, key, _ in self.w.stores[region].written]
        return sum(not is_own(key) for key in written)

    def settle(self) -> None:
        """Enough rounds for anything to have come round."""
        for _ in range(4):
            self.w.later(400)
            self.w.work(1)

    def check_alike(self) -> dict[str, str]:
        """All have the same; and if all is compared once more nothing is written. Gives what they have."""
        self.settle()
        first = self.there(self.regions[0])
        for region in self.regions:
            assert self.there(region) == first
        written = self.written
        self.settle()
        assert self.written == written
        self.w.check_counts()
        return first


def test_what_either_side_writes_comes_to_the_other_once(w: World) -> None:
    ends = Ends(w, PAIR)
    for number in range(5):
        ends.put(HOME, f"home-{number}", "h")
        ends.put(AWAY, f"away-{number}", "a")
    assert len(ends.check_alike()) == 10
    assert ends.written == 10
    assert STAMP_HEADER in w.away.described("out", "home-1")
    assert STAMP_HEADER not in w.home.described("src", "home-1")


def test_the_later_of_two_stays(w: World) -> None:
    ends = Ends(w, PAIR)
    ends.put(HOME, "a", "earlier")
    ends.put(AWAY, "b", "earlier")
    w.later(2)
    ends.put(AWAY, "a", "later")
    ends.put(HOME, "b", "later")
    assert ends.check_alike() == {"a": "later", "b": "later"}
    assert ends.written == 2


def test_of_one_second_the_region_that_comes_first(w: World) -> None:
    """eu-west-1."""
    ends = Ends(w, PAIR)
    ends.put(HOME, "a", "home")
    ends.put(AWAY, "a", "away")
    w.stores[HOME].modified["src", "a"] = w.stores[AWAY].modified["out", "a"]
    assert ends.check_alike() == {"a": "away"}


def test_what_is_changed_again_and_again_goes_on_from_where_it_is(w: World) -> None:
    ends = Ends(w, PAIR)
    for number in range(6):
        ends.put((HOME, AWAY)[number % 2], "a", f"{number}")
        ends.settle()
    assert ends.check_alike() == {"a": "5"}
    assert ends.written == 6


def test_a_copy_that_came_late_is_as_old_as_what_it_is_of(w: World) -> None:
    """The source writes again before the copy of what it had is there: by the times of stores the copy is younger."""
    ends = Ends(w, PAIR)
    ends.put(HOME, "a", "first")
    w.scan()
    fresh = lambda method, bucket, key: ends.put(HOME, "a", "second") if method == "PUT" else None  # noqa: E731
    w.away.before = fresh
    w.copy()
    w.away.before = lambda *_: None
    w.away.modified["out", "a"] = clock.now()
    assert ends.check_alike() == {"a": "second"}


@pytest.mark.parametrize("conditional", [True, False], ids=["conditions", "none"])
def test_who_writes_while_a_copy_is_on_its_way(w: World, conditional: bool) -> None:
    """A store that looks at conditions keeps what came in between; without, it is lost there, and says so to nobody."""
    ends = Ends(w, PAIR)
    ends.put(HOME, "a", "first")
    ends.settle()
    w.later(5)
    ends.put(HOME, "a", "second")
    w.away.conditional = conditional
    w.later(400)
    w.scan()

    def write(method: str, bucket: str, key: str) -> None:
        if method == "PUT":
            w.away.before = lambda *_: None
            w.later(5)
            ends.put(AWAY, "a", "third")

    w.away.before = write
    w.copy()
    assert ends.check_alike() == {"a": "third" if conditional else "second"}


@pytest.mark.parametrize(
    "error",
    [
        coded(Invalid("400"), "MetadataTooLarge"),
        coded(Invalid("400"), "InvalidArgument"),
        coded(Conflict("409"), "ConditionalRequestConflict"),
    ],
    ids=lambda error: error.store_code,
)
def test_an_object_that_is_refused_leaves_the_others_their_condition(w: World, error: LakeMirrorError) -> None:
    ends = Ends(w, PAIR)
    for key in "ab":
        ends.put(HOME, key, "first")
    ends.settle()
    w.later(5)
    for key in "ab":
        ends.put(HOME, key, "second")
    w.later(400)
    w.scan()
    Link.objects.update(workers=1)
    refused: list[str] = []

    def meanwhile(method: str, bucket: str, key: str) -> None:
        if (method, key) == ("PUT", "a") and not refused:
            refused.append(key)
            raise error
        if (method, key) == ("PUT", "b"):
            w.away.before = lambda *_: None
            w.later(5)
            ends.put(AWAY, "b", "third")

    w.away.before = meanwhile
    w.copy()
    w.away.before = lambda *_: None
    w.later(DAILY)
    assert refused and ends.check_alike() == {"a": "second", "b": "third"}


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "there"])
def test_what_is_gone_when_its_condition_is_looked_at_is_no_missing_bucket(w: World, gone: bool) -> None:
    """AWS and MinIO answer 404 NoSuchKey to a PUT with If-Match where there is no object any more."""
    ends = Ends(w, PAIR)
    ends.put(HOME, "a", "first")
    ends.settle()
    w.later(5)
    ends.put(HOME, "a", "second")
    w.later(400)
    w.scan()

    def meanwhile(method: str, bucket: str, key: str) -> None:
        if (method, key) == ("PUT", "a"):
            w.away.before = lambda *_: None
            if gone:
                del w.away.buckets["out"]["a"]
            raise coded(NotFound("404"), "NoSuchKey")

    w.away.before = meanwhile
    w.copy()
    assert list(OpenObject.objects.values_list("code", flat=True)) == ([] if gone else ["TargetFailed"])
    w.later(5)
    w.copy()
    assert ends.there(AWAY) == {"a": "second"}


def test_a_store_that_knows_no_conditions_gets_all(w: World) -> None:
    ends = Ends(w, PAIR)
    w.away.refuses_conditions = True
    for key in "abc":
        ends.put(HOME, key, "first")
    assert len(ends.check_alike()) == 3
    ends.put(HOME, "a", "second")
    assert ends.check_alike()["a"] == "second"


def test_a_dry_run_replaces_nothing_that_is_newer(w: World) -> None:
    w.rule(conflict="newest")
    for key in ("older", "newer"):
        w.put(key, b"ours")
    for key, seconds in (("older", -60), ("newer", 60)):
        w.away.buckets["out"][key] = b"somebody's"
        w.away.modified["out", key] = clock.now() + timedelta(seconds=seconds)
    made = through(w, dry_run(w))
    assert rows_of(made) == [("newer", "skip", "target-newer"), ("older", "overwrite", "")]
    w.work()
    assert w.there() == {"older": b"ours", "newer": b"somebody's"}


def hide_etags(w: World) -> None:
    """All are encrypted by KMS, so each store gives ETags of its own."""
    for region, store in w.stores.items():
        store.told = {"x-amz-server-side-encryption": "aws:kms"}
        store.etag_of = lambda data, region=region: f"{region}-{hash(data):x}"


def test_of_two_objects_of_one_second_the_copy_is_not_taken_for_that_of_the_later_one(w: World) -> None:
    ends = Ends(w, PAIR)
    hide_etags(w)
    ends.put(HOME, "a", "one")
    at = w.home.modified["src", "a"]
    w.scan()
    w.copy()
    assert ends.there(AWAY) == {"a": "one"}
    ends.put(HOME, "a", "two")
    w.home.modified["src", "a"] = w.away.modified["out", "a"] = at
    assert ends.check_alike() == {"a": "two"}


def test_a_copy_that_came_late_over_another_way_is_not_taken_for_a_newer_object(w: World) -> None:
    """By the times of stores it is younger: it was copied after the source had another one."""
    ends = Ends(w, [(HOME, AWAY), (AWAY, FAR), (FAR, AWAY)])
    Rule.objects.filter(name=FAR).update(paused=True)
    hide_etags(w)
    ends.put(HOME, "a", "one")
    w.scan()
    Rule.objects.filter(name=AWAY).update(paused=True)
    w.copy()
    Rule.objects.filter(name=HOME).update(paused=True)
    w.later(600)
    ends.put(HOME, "a", "two")
    w.later(600)
    Rule.objects.filter(name=AWAY).update(paused=False)
    w.work(2)
    assert ends.there(FAR) == {"a": "one"}
    w.rule((FAR, "s3://two"), name="straight", conflict="newest")
    reading = look_at(Rule.objects.get(name="straight"), "a")
    assert reading.standing == "PENDING"
    w.later(400)
    w.work()
    assert ends.there(FAR) == {"a": "two"}
    assert look_at(Rule.objects.get(name="straight"), "a").standing == "COMPLETED"
    written = ends.written
    ends.settle()
    assert ends.written == written


@pytest.mark.parametrize("ways", [RING, MESH], ids=["ring", "mesh"])
def test_each_object_comes_to_each_place_once(w: World, ways: Sequence[tuple[str, str]]) -> None:
    ends = Ends(w, ways)
    for region in ENDS:
        ends.put(region, f"of-{region}", "x")
    assert len(ends.check_alike()) == 3
    assert ends.written == 6


def test_a_place_that_is_down_for_a_while(w: World) -> None:
    ends = Ends(w, RING)
    w.far.before = silent()
    ends.put(HOME, "a", "1")
    ends.settle()
    ends.put(AWAY, "a", "2")
    ends.settle()
    w.far.before = lambda *_: None
    assert ends.check_alike() == {"a": "2"}


def test_equal_content_under_other_etags_is_known_by_its_stamp(w: World) -> None:
    """KMS: whatever was written later would else count as a copy."""
    ends = Ends(w, PAIR)
    for store in (w.home, w.away):
        store.told = {"x-amz-server-side-encryption": "aws:kms"}
    w.away.etag_of = lambda data: f"kms-{hash(data):x}"
    ends.put(HOME, "a", "one")
    assert ends.check_alike() == {"a": "one"}
    ends.put(HOME, "a", "two")
    assert ends.check_alike() == {"a": "two"}
    w.later(5)
    ends.put(AWAY, "a", "new")
    assert ends.check_alike() == {"a": "new"}
    assert ends.written == 3


@pytest.mark.parametrize("seed", range(3))
def test_random_lives(w: World, seed: int) -> None:
    """Puts everywhere, at any step of a copy, by stores that break down: in the end all have what was written last."""
    chance = random.Random(seed)
    ends = Ends(w, chance.choice([PAIR, RING, MESH]))
    last: dict[str, tuple[object, str, str]] = {}
    keys, number = ["a", "b/c", "d"], 0

    def put() -> None:
        nonlocal number
        number += 1
        region, key = chance.choice(ends.regions), chance.choice(keys)
        ends.put(region, key, f"{number}")
        at = w.stores[region].modified[ENDS[region], key].replace(microsecond=0)
        best = last.get(key)
        if best is None or at > best[0] or (at == best[0] and region <= best[1]):
            last[key] = at, region, f"{number}"

    def meddle(method: str, bucket: str, key: str) -> None:
        if method in ("PUT", "COPY") and chance.random() < 0.2:
            put()

    for region in ends.regions:
        w.stores[region].before = meddle
    for _ in range(25):
        step = chance.choice(["put", "put", "scan", "copy", "later", "later", "down", "up"])
        if step == "put":
            put()
        elif step == "scan":
            w.scan()
        elif step == "copy":
            w.copy()
        elif step == "later":
            w.later(chance.choice([1, 10, 400]))
        else:
            w.stores[chance.choice(ends.regions)].before = silent() if step == "down" else meddle
    for region in ends.regions:
        w.stores[region].before = lambda *_: None
    w.later(4000)
    assert ends.check_alike() == {key: content for key, (_, _, content) in last.items()}


# --- a ring -----------------------------------------------------------------------------------------------------------


def written_anew(w: World, ends: Ends) -> None:
    """All have the same; then somebody writes at the last place, and at the first one what it has already."""
    ends.put(HOME, "a", "x")
    ends.settle()
    w.later(5)
    ends.put(FAR, "a", "y")
    w.later(5)
    ends.put(HOME, "a", "x")


@pytest.mark.parametrize("ways", [RING, MESH, [(HOME, AWAY), (AWAY, HOME), (AWAY, FAR)]], ids=["ring", "mesh", "tail"])
def test_what_a_key_had_already_is_newer_if_it_is_written_anew(w: World, ways: Sequence[tuple[str, str]]) -> None:
    """Equal content is not written: the second place does not hear of it."""
    ends = Ends(w, ways)
    written_anew(w, ends)
    before = ends.written
    assert ends.check_alike() == {"a": "x"}
    assert ends.written == before + 1 or ways == MESH, "where it differed"


@pytest.mark.parametrize(("ways", "number"), [(PAIR, 0), (MESH, 0), (RING, 1)], ids=["both ways", "a mesh", "a ring"])
def test_how_many_places_are_asked_besides(w: World, ways: Sequence[tuple[str, str]], number: int) -> None:
    Ends(w, ways)
    links = Link.objects.select_related("rule")
    assert {len(ways_to(link.rule, link)) for link in links} == {number}


def test_only_where_the_target_has_something_newer_one_place_more_is_asked(w: World) -> None:
    ends = Ends(w, RING)
    for key in "ab":
        ends.put(HOME, key, "x")
    ends.check_alike()
    w.later(5)
    ends.put(FAR, "a", "y")
    heads: list[tuple[str, str]] = []
    for region in ends.regions:
        told = lambda method, bucket, key, region=region: heads.append((region, key)) if method == "HEAD" else None  # noqa: E731
        w.stores[region].before = told
    with closing(looker_of(Rule.objects.get(name=AWAY), [w.link(name=AWAY)])) as looker:
        for window in looker.windows("", None):
            assert not looker.lacking(window, list(filter(looker.wants, window.items)))[w.link(name=AWAY).pk]
    assert sorted(heads) == [(FAR, "a"), (AWAY, "a"), (HOME, "a")]


def test_while_a_place_does_not_answer_nobody_knows_how_new_it_is(w: World) -> None:
    ends = Ends(w, RING)
    written_anew(w, ends)
    w.home.before = silent()
    ends.settle()
    row = w.link(name=AWAY).open_objects.get()
    assert (row.name, row.code, row.status) == ("a", "SourceFailed", "pending")
    assert "how new" in row.detail
    assert w.link(name=AWAY).health == "up" and ends.there(FAR) == {"a": "y"}
    w.home.before = lambda *_: None
    w.later(4000)
    assert ends.check_alike() == {"a": "x"}


def test_a_rule_that_leaves_something_out_does_not_count_as_straight(w: World) -> None:
    """What it does not copy comes by the others."""
    ends = Ends(w, [*RING, (AWAY, HOME)])
    assert ways_to(Rule.objects.get(name=HOME), w.link(name=HOME)) == ()
    Rule.objects.filter(name=AWAY).update(tags={"t": "1"})
    assert [way.source.region for way in ways_to(Rule.objects.get(name=HOME), w.link(name=HOME))] == [FAR]
    assert ends.regions


def test_what_has_become_a_ring_is_one_at_once(w: World) -> None:
    """There is nothing to be learned first: places differ, and a rule that is deleted leaves them a ring."""
    ends = Ends(w, [*RING, (HOME, FAR)])
    assert not any(ways_to(link.rule, link) for link in Link.objects.filter(rule__name=AWAY))
    Link.objects.filter(rule__name=HOME, region=FAR).update(paused=True)
    written_anew(w, ends)
    ends.settle()
    assert ends.there(FAR) == {"a": "y"}
    Link.objects.filter(rule__name=HOME, region=FAR).delete()
    assert ends.check_alike() == {"a": "x"}


# --- which rules may be -----------------------------------------------------------------------------------------------


def wish(name: str, source: tuple[str, str], *targets: tuple[str, str], conflict: str = "newest") -> RuleWish:
    return RuleWish(name, *source, [TargetWish(*one) for one in targets], conflict=conflict, overwrite=True)


A, B, C = (HOME, "s3://src/raw"), (AWAY, "s3://out/raw"), (FAR, "s3://two/raw")


def test_rules_lead_both_ways_where_the_newer_one_stays(w: World, owner: User) -> None:
    rule_create(actor=owner, wish=wish("there", A, B, C))
    rule_create(actor=owner, wish=wish("back", B, A, C))
    rule_create(actor=owner, wish=wish("mesh", C, A, B))
    assert Rule.objects.filter(conflict="newest").count() == 3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (wish("there", A, B, conflict="source"), wish("back", B, A)),
        (wish("there", A, B), wish("back", B, A, conflict="source")),
        (wish("there", A, B), wish("back", (AWAY, "s3://out/raw/deeper"), A)),
        (wish("there", A, B), wish("back", B, (HOME, "s3://src/raw/deeper"))),
        (wish("there", A, B, conflict="source"), wish("other", C, B)),
    ],
    ids=["one does not", "nor the other", "from within", "to within", "a target that is another's"],
)
def test_rules_that_would_go_round_are_refused(w: World, owner: User, first: RuleWish, second: RuleWish) -> None:
    rule_create(actor=owner, wish=first)
    with pytest.raises(Conflict):
        rule_create(actor=owner, wish=second)


@pytest.mark.parametrize(("field", "given"), [("conflict", "oldest"), ("sweep_heads_per_second", 5)])
def test_what_can_not_be(w: World, owner: User, field: str, given: object) -> None:
    with pytest.raises(Invalid) as refused:
        rule_create(actor=owner, wish=replace(wish("there", A, B), **{field: given}))
    assert refused.value.field == field
