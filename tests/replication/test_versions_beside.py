"""Tags, locks and storage classes of rules that copy all versions, and changes of them on single versions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Q

from core.errors import Denied, LakeMirrorError, NotFound, RemoteFailure
from core.replicating.outcomes import Kind
from core.replicating.states import Code
from core.travelling.describing import LOCK_HOLD, LOCK_MODE, LOCK_UNTIL, STORAGE_CLASS, timestamp
from db import clock
from deployment.wiring.replication_jobs import describer_of, version_mover_between, versioned_place_of
from replication.engine.building import how_copied, pin_of, signs
from replication.models import Link, OpenObject, Rule
from replication.transitions import ledger, touching
from spark_jobs.replicate.building import Between
from spark_jobs.replicate.copying import Wanted
from spark_jobs.replicate.version_copying import VersionCopying
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.replication.test_passes import dry_run
from tests.replication.version_world import Kept, VersionWorld, version_world
from tests.replication.world import AWAY, FAR, HOME, World, refusing

pytestmark = pytest.mark.django_db
RULES = "/service/replication/v1/rules"
BOTH = ((AWAY, "s3://out"), (FAR, "s3://out"))
OF = "x-amz-meta-lakemirror-source-version"


@pytest.fixture
def v(lm: Deployment) -> Iterator[VersionWorld]:
    """Stores that keep versions and lock objects: a plain target and an exact one."""
    with version_world(lm) as made:
        for store in made.stores.values():
            store.locking = {"src", "out", "two"}
        yield made


def retained(days: float, mode: str = "GOVERNANCE") -> dict[str, str]:
    return {LOCK_MODE: mode, LOCK_UNTIL: timestamp(clock.now() + timedelta(days=days))}


def put(v: VersionWorld, key: str, data: bytes, tags: dict[str, str] | None = None, **lock: str) -> Kept:
    return v.home.add("src", key, data, tags=dict(tags or {}), lock=dict(lock))


def tell(v: VersionWorld, *keys: str) -> None:
    """An event of tags or a lock."""
    changed = {("src", key) for key in keys}
    touching.objects_changed(HOME, changed, changed)


def beside(v: VersionWorld, region: str, key: str = "a") -> list[tuple[dict[str, str], dict[str, str]]]:
    """Tags and lock of each version that is no marker."""
    bucket = "src" if region == HOME else "out"
    chain = v.stores[region].chains[bucket][key]  # type: ignore[attr-defined]
    return [
        (one.tags, {name: told for name, told in one.lock.items() if told != "OFF"}) for one in chain if not one.marker
    ]


def equal(v: VersionWorld, *keys: str) -> None:
    for key in keys or ("a",):
        assert beside(v, AWAY, key) == beside(v, HOME, key)
        assert beside(v, FAR, key) == beside(v, HOME, key)
    assert not OpenObject.objects.exists()


def three(v: VersionWorld) -> list[Kept]:
    """Three versions, of which the last two have the same bytes, with a marker between."""
    first = put(v, "a", b"1", {"t": "1"}, **retained(30))
    second = put(v, "a", b"22", {"t": "2"})
    v.drop("a")
    return [first, second, put(v, "a", b"22", {"u": "x y"}, **{LOCK_HOLD: "ON"})]


def written(v: VersionWorld) -> tuple[int, int]:
    return len(v.away.written), len(v.far.written)


def test_each_version_travels_with_its_tags_retention_and_hold(v: VersionWorld) -> None:
    three(v)
    v.rule(*BOTH, metadata="all")
    v.work(1)
    equal(v)
    assert v.far.ids("out") == v.home.ids("src")
    assert all(store.asked["PUT tagging"] == store.asked["PUT retention"] == 0 for store in (v.away, v.far))


def test_only_content_travels_where_that_was_asked_for(v: VersionWorld) -> None:
    three(v)
    v.rule(*BOTH, metadata="content")
    v.work(1)
    assert beside(v, AWAY) == beside(v, FAR) == [({}, {})] * 3 and not OpenObject.objects.exists()


def test_a_change_of_one_version_arrives_on_that_version_and_makes_no_other(v: VersionWorld) -> None:
    first, second, third = three(v)
    v.rule(*BOTH, metadata="all")
    v.work(1)
    before = written(v)
    first.lock, second.tags, third.tags = retained(90), {"t": "new"}, {}
    third.lock = {LOCK_HOLD: "OFF"}
    second.lock = {LOCK_HOLD: "ON"}
    tell(v, "a")
    v.work(1)
    equal(v)
    assert written(v) == before and v.far.ids("out") == v.home.ids("src")


def test_an_event_of_bytes_asks_for_no_older_versions(v: VersionWorld) -> None:
    three(v)
    v.rule(*BOTH, metadata="all")
    v.work(1)
    put(v, "a", b"4", {"n": "1"})
    asked = v.home.asked["HEAD"]
    touching.objects_changed(HOME, {("src", "a")})
    v.work(1)
    equal(v)
    assert v.home.asked["HEAD"] - asked <= 2


def test_an_event_that_comes_before_the_row_is_looked_at_is_not_lost_to_another_one(v: VersionWorld) -> None:
    first, *_ = three(v)
    v.rule(*BOTH, metadata="all")
    v.work(1)
    first.tags = {"t": "new"}
    tell(v, "a")
    put(v, "a", b"4")
    touching.objects_changed(HOME, {("src", "a")})
    v.work(1)
    equal(v)


def test_a_sweep_finds_what_no_event_told_also_below_a_marker(v: VersionWorld) -> None:
    first, second, _ = three(v)
    put(v, "b", b"1")
    v.drop("a")
    v.rule(*BOTH, metadata="all", sweep_heads_per_second=1000)
    v.work(2)
    first.tags, second.tags = {"t": "new"}, {}
    v.home.chains["src"]["b"][0].lock = retained(5)
    v.work(1)
    assert beside(v, AWAY) != beside(v, HOME)
    v.later(400)
    v.work(2)
    equal(v, "a", "b")
    assert Rule.objects.get().swept_at is not None


@pytest.mark.parametrize("region", [AWAY, FAR])
def test_a_sweep_waits_for_its_turn_by_the_versions_that_it_asks_about(
    v: VersionWorld, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from replication.engine import sweeping

    for data in (b"1", b"2", b"3"):
        put(v, "a", data)
    v.rule((region, "s3://out"), metadata="all")
    v.work(1)
    turns: list[float] = []
    monkeypatch.setattr(sweeping.Rate, "turn", lambda rate, size=1.0: turns.append(size) or 0.0)
    Rule.objects.update(sweep_heads_per_second=100)
    v.work(1)
    assert turns == [8]  # a listing and three versions, at two places


def test_19_a_lock_that_a_change_of_tags_takes_away_is_set_again(v: VersionWorld) -> None:
    first, *_ = three(v)
    v.away.loses_locks = v.far.loses_locks = True
    v.rule(*BOTH, metadata="all")
    v.work(1)
    first.tags = {"t": "new"}
    tell(v, "a")
    v.work(1)
    equal(v)
    assert v.away.asked["PUT retention"] == v.far.asked["PUT retention"] == 1


def test_19_a_lock_that_can_not_be_put_right_is_told_with_its_version(v: VersionWorld) -> None:
    first, *_ = three(v)
    v.rule(*BOTH, metadata="all")
    v.work(1)
    v.away.loses_locks = True
    v.away.after = lambda method, bucket, key: (
        [one.lock.clear() for one in v.away.chains["out"]["a"]] and None if method == "PUT retention" else None
    )
    first.tags = {"t": "new"}
    tell(v, "a")
    v.work(1)
    row = OpenObject.objects.get()
    assert (row.status, row.code, row.version) == ("failed", "LockLost", first.id)
    v.away.after = lambda *_: None
    v.away.loses_locks = False
    v.later(90_000)
    v.work(1)
    equal(v)


def test_20_longer_and_stricter_retention_of_the_target_stays_and_is_told(v: VersionWorld) -> None:
    first, *_ = three(v)
    first.lock = retained(60, "COMPLIANCE")
    v.rule(*BOTH, metadata="all")
    v.work(1)
    long = retained(365, "COMPLIANCE")
    for store in (v.away, v.far):
        store.chains["out"]["a"][0].lock = dict(long)
    first.lock = retained(90, "COMPLIANCE")
    tell(v, "a")
    v.work(1)
    rows = list(OpenObject.objects.values_list("status", "code", "version"))
    assert rows == [("skipped", "Locked", first.id)] * 2
    assert beside(v, AWAY)[0][1] == beside(v, FAR)[0][1] == long


def test_a_target_without_object_lock_is_told(v: VersionWorld) -> None:
    three(v)
    put(v, "b", b"1", {"t": "1"})
    v.away.locking = set()
    v.rule((AWAY, "s3://out"), metadata="all")
    v.work(1)
    assert [(row.name, row.code) for row in v.rows()] == [("a", "DstBucketObjectLockConfigMissing")]
    assert beside(v, AWAY, "b") == beside(v, HOME, "b")


def test_tags_that_a_store_drops_are_written_by_themselves_and_missed_if_the_worker_is_lost_before(
    v: VersionWorld,
) -> None:
    three(v)
    v.away.drops_tags = v.far.drops_tags = True

    def lost(method: str, bucket: str, key: str) -> None:
        if method == "PUT" and key == "a":
            raise RuntimeError("the worker is gone")

    v.rule(*BOTH, metadata="all")
    v.scan()
    v.away.after = v.far.after = lost
    v.copy()
    v.away.after = v.far.after = lambda *_: None
    v.later(90_000)
    v.work(1)
    equal(v)


def test_a_version_whose_tags_could_not_be_written_is_tried_again_and_holds_up_no_other(v: VersionWorld) -> None:
    three(v)
    v.away.drops_tags = True
    v.away.before = refusing(Denied("403"), "PUT tagging")
    v.rule((AWAY, "s3://out"), metadata="all")
    v.work(1)
    row = OpenObject.objects.get()
    assert row.code == "DstPutTaggingNotPermitted" and row.version
    v.away.before = lambda *_: None
    v.later(90_000)
    v.work(1)
    assert beside(v, AWAY) == beside(v, HOME) and not OpenObject.objects.exists()


def test_what_is_retried_is_compared_whatever_it_failed_for(v: VersionWorld) -> None:
    """The reason of the first version that failed is told: that of another one is not forgotten with it."""
    first, second, _ = three(v)
    v.rule((AWAY, "s3://out"), metadata="all")
    v.work(1)
    first.tags, second.tags = {"t": "one"}, {"t": "two"}
    v.away.before = refusing(RemoteFailure("500"), "PUT tagging")
    tell(v, "a")
    v.work(1)
    assert [row.code for row in v.rows()] == ["TargetFailed"]
    v.away.before = lambda *_: None
    ledger.retry(Link.objects.get(), Q(), clock.now())
    v.work(1)
    assert beside(v, AWAY) == beside(v, HOME) and not OpenObject.objects.exists()


def test_tags_that_change_while_a_key_is_copied_are_not_lost(v: VersionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    from replication.engine import settling

    first, *_ = three(v)
    v.rule(*BOTH, metadata="all")
    v.work(1)
    first.tags = {"t": "new"}
    tell(v, "a")
    v.scan()
    real = settling.settle

    def settle(*args: Any) -> Any:
        if first.tags == {"t": "new"}:
            first.tags = {"t": "newer"}
            tell(v, "a")
            v.scan()
        return real(*args)

    monkeypatch.setattr(settling, "settle", settle)
    v.copy()
    v.work(1)
    equal(v)


def test_what_readers_see_gets_a_change_also_where_it_was_written_again_on_top(v: VersionWorld) -> None:
    put(v, "a", b"1", {"t": "1"})
    v.rule(*BOTH, metadata="all")
    v.work(1)
    for store in (v.away, v.far):
        store.add("out", "a", b"theirs")
    v.look()
    v.home.chains["src"]["a"][0].tags = {"t": "new"}
    tell(v, "a")
    v.work(1)
    for store in (v.away, v.far):
        ours = [one for one in store.chains["out"]["a"] if one.data == b"1"]
        assert len(ours) == 2 and all(one.tags == {"t": "new"} for one in ours)
        assert next(one for one in store.chains["out"]["a"] if one.data == b"theirs").tags == {}


def test_copies_are_told_apart_by_what_they_say_that_they_are_of(v: VersionWorld) -> None:
    """Of two versions with the same bytes the older one is purged at the source: the newer one's hold is not its
    copy's, which nobody could purge then."""
    old = put(v, "a", b"1", {"t": "old"})
    new = put(v, "a", b"1", {"t": "new"})
    put(v, "a", b"2")
    v.rule((AWAY, "s3://out"), metadata="all")
    v.work(1)
    v.home.chains["src"]["a"].remove(old)
    new.lock = {LOCK_HOLD: "ON"}
    tell(v, "a")
    v.work(1)
    assert [(one.tags, one.protected) for one in v.away.chains["out"]["a"]] == [
        ({"t": "old"}, False),
        ({"t": "new"}, True),
        ({}, False),
    ]


def test_a_locked_copy_is_not_purged(v: VersionWorld) -> None:
    old = put(v, "a", b"1", **{LOCK_HOLD: "ON"})
    put(v, "a", b"2")
    v.rule(*BOTH, metadata="all", purges=True)
    v.work(2)
    v.home.chains["src"]["a"].remove(old)
    v.look()
    v.later(100)
    v.work(2)
    assert {(row.kind, row.status, row.code) for row in OpenObject.objects.all()} == {("purge", "skipped", "Locked")}


def test_what_could_not_be_put_beside_a_version_is_not_forgotten_when_the_time_is_up(v: VersionWorld) -> None:
    """The first version is there without its lock, the second one has still to come, and the round ends."""
    put(v, "a", b"1", {"t": "1"})
    put(v, "a", b"2", {"t": "2"})
    v.away.drops_tags = True
    v.rule((AWAY, "s3://out"), metadata="all")
    v.scan()
    link = v.link()
    copying = versions_of(link)

    def refuse(method: str, bucket: str, key: str) -> None:
        if method == "PUT tagging":
            copying.stopped = lambda: True
            raise Denied("403")

    v.away.before = refuse
    outcome = copying.copy(Wanted("a", 2, "", absent=True))
    assert outcome.kind is Kind.RETRY and outcome.code is Code.TARGET_TAGS_DENIED
    v.away.before, copying.stopped = (lambda *_: None), (lambda: False)
    assert copying.copy(Wanted("a", 2, "", absent=False, attempts=1)).kind is Kind.DONE
    assert beside(v, AWAY) == beside(v, HOME)


def versions_of(link: Link) -> VersionCopying:
    """What copies versions for a link."""
    source, target = (versioned_place_of(one.region, one.uri) for one in (link.rule, link))
    more = {"workers": 1, "seconds": 60.0, "bytes_per_second": 0.0, "objects_per_second": 0.0}
    mover = version_mover_between((link.rule.region, link.rule.uri), (link.region, link.uri), **more)  # type: ignore[arg-type]
    places = Between(source, target, mover, pin_of(link, target), signs(), lambda: False, clock.now, describer_of)
    return places.versions(how_copied(link))


def test_each_version_lies_in_the_storage_class_that_the_rule_names(v: VersionWorld) -> None:
    v.home.add("src", "a", b"1", told={STORAGE_CLASS: "COLD"})
    v.home.add("src", "a", b"2")
    v.rule((AWAY, "s3://out"), (FAR, "s3://out"), storage_class="same")
    v.work(1)
    for store in (v.away, v.far):
        assert [one.told.get(STORAGE_CLASS) for one in store.chains["out"]["a"]] == ["COLD", None]


def test_both_ways_tags_travel_with_a_version_and_later_changes_do_not(v: VersionWorld) -> None:
    v.stores[AWAY].exact = True  # type: ignore[attr-defined]
    one = put(v, "a", b"1", {"t": "1"}, **retained(5))
    v.rule((FAR, "s3://out"), metadata="all", conflict="newest")
    v.work(1)
    assert beside(v, FAR) == beside(v, HOME)
    one.tags = {"t": "2"}
    tell(v, "a")
    v.work(1)
    assert beside(v, FAR) != beside(v, HOME) and not OpenObject.objects.exists()


def test_the_object_s_page_tells_of_a_version_that_is_described_otherwise(v: VersionWorld, api: Api) -> None:
    first, *_ = three(v)
    v.rule(*BOTH, metadata="all")
    v.work(1)
    assert api.call("GET", f"{RULES}/r/objects?key=a")[1]["status"] == "COMPLETED"
    first.tags = {"t": "new"}
    told = api.call("GET", f"{RULES}/r/objects?key=a")[1]
    assert told["status"] == "PENDING"
    statuses = {
        one["version"]: {at["status"] for at in one["targets"]} for one in told["versions"] if not one["marker"]
    }
    assert statuses[first.id] == {"PENDING"} and set.union(*statuses.values()) == {"PENDING", "VERIFIED"}


# --- only versions with tags ------------------------------------------------------------------------------------------

SALES = {"team": "sales"}


def shown(v: VersionWorld, region: str, key: str = "a") -> list[bytes | None]:
    chain = v.stores[region].chains["out"].get(key, [])  # type: ignore[attr-defined]
    return [None if one.marker else one.data for one in chain]


def test_26_only_versions_with_the_tags_are_copied_and_no_markers(v: VersionWorld) -> None:
    put(v, "a", b"1", SALES | {"x": "y"})
    put(v, "a", b"2")
    put(v, "a", b"3", SALES)
    put(v, "a", b"4")
    v.drop("a")
    put(v, "b", b"1")
    v.rule(*BOTH, metadata="all", tags=SALES)
    v.work(2)
    for region in (AWAY, FAR):
        assert shown(v, region) == [b"1", b"3"] and shown(v, region, "b") == []
    assert not OpenObject.objects.exists()
    before = written(v)
    v.later(4000)
    v.look()
    assert written(v) == before and not OpenObject.objects.exists()


def test_a_dry_run_counts_keys_of_which_no_version_has_the_tags_as_skipped(v: VersionWorld) -> None:
    put(v, "a", b"1", SALES)
    put(v, "b", b"1")
    put(v, "c", b"1", SALES)
    v.rule((FAR, "s3://out"), tags=SALES)
    v.work(1)
    put(v, "c", b"2", SALES)
    made = dry_run(v)
    for _ in range(4):
        World.look(v)
    made.refresh_from_db()
    assert made.state == "completed" and made.actions == {
        "1": {"equal": [1, 1], "skip:filter": [1, 1], "overwrite": [1, 2]}
    }


def test_the_checks_try_tags_of_single_versions(v: VersionWorld, api: Api) -> None:
    put(v, "a", b"1", {"t": "1"})
    targets = [{"region": AWAY, "uri": "s3://out"}, {"region": FAR, "uri": "s3://two"}]
    body = {"name": "x", "source": {"region": HOME, "uri": "s3://src"}, "targets": targets, "versions": "all"}
    v.away.before = refusing(Denied("403 AccessDenied"), "PUT tagging")
    _, told = api.call("POST", f"{RULES}/preflight", body)
    states = {check["id"]: check["state"] for check in told["checks"]}
    assert states["source-right:s3:GetObjectVersionTagging"] == "ok"
    assert states["target-1-right:s3:PutObjectVersionTagging"] == "failed"
    assert states["target-2-right:s3:PutObjectVersionTagging"] == states["target-2-lock"] == "ok"


def test_26_a_version_that_gets_the_tags_later_comes_and_one_that_loses_them_stays_as_it_was(v: VersionWorld) -> None:
    first = put(v, "a", b"1", SALES)
    second = put(v, "a", b"2")
    put(v, "a", b"3", SALES)
    v.rule(*BOTH, metadata="all", tags=SALES)
    v.work(2)
    first.tags, second.tags = {"other": "1"}, dict(SALES)
    tell(v, "a")
    v.work(1)
    assert shown(v, FAR) == [b"1", b"2", b"3"]
    assert shown(v, AWAY) == [b"1", b"3", b"2", b"3"]  # what is new is the latest there
    assert v.far.chains["out"]["a"][0].tags == SALES and v.away.chains["out"]["a"][0].tags == SALES
    assert not OpenObject.objects.exists()


@pytest.mark.parametrize("error", [NotFound("404"), Denied("403")])
def test_a_version_whose_tags_can_not_be_read_is_told_by_its_link(v: VersionWorld, error: LakeMirrorError) -> None:
    put(v, "a", b"1", SALES)
    v.rule((AWAY, "s3://out"), tags=SALES)
    v.home.before = refusing(error, "GET tagging")
    v.work(1)
    codes = [row.code for row in v.rows()]
    assert codes == ([] if isinstance(error, NotFound) else ["SrcGetTaggingNotPermitted"])
    v.home.before = lambda *_: None
    v.later(90_000)
    v.look()
    assert shown(v, AWAY) == [b"1"] and v.rows() == []


def test_tags_that_decide_and_purges_do_not_go_together(v: VersionWorld, api: Api) -> None:
    body = {"name": "x", "source": {"region": HOME, "uri": "s3://src"}, "targets": [{"region": FAR, "uri": "s3://two"}]}
    status, told = api.call("POST", RULES, body | {"versions": "all", "purges": True, "tags": SALES})
    assert (status, told["field"]) == (400, "purges") and "nobody can tell" in told["message"]


def test_a_new_rule_of_all_versions_takes_all_along_unless_told(v: VersionWorld, api: Api) -> None:
    body = {"name": "x", "source": {"region": HOME, "uri": "s3://src"}, "targets": [{"region": FAR, "uri": "s3://two"}]}
    status, told = api.call("POST", RULES, body | {"versions": "all", "sweep_heads_per_second": 5})
    assert (status, told["metadata"], told["sweep_heads_per_second"]) == (201, "all", 5)
