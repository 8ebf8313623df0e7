"""Everything that would keep a mirror from working is said before it is made, with what to do about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from audit.models import AuditEvent
from core.errors import Denied, LakeMirrorError, NotFound, RemoteFailure, Unauthenticated, Unreachable
from core.installations.preflight import DECIDING, Check, CheckOutcome
from core.installations.replication_rights import UNTRIED
from core.installations.webhook_action import ACTION_FILE
from core.replication.facts import StoreKind
from core.types import GcRules, LifecycleRule, ReplicationRule, ServerInfo
from deployment.wiring import clients
from installations import probes
from installations.permission_probes import tries_of
from jobs import deployments
from mirrors.models import Mirror, Repository
from mirrors.preflight import checks as module
from mirrors.preflight.checks import Preflight, preflight
from mirrors.preflight.questions import Plan
from rbac.models import User
from rbac.services import builtin
from tests.api import BODY, MIRRORS, Api
from tests.fakes import Lake
from tests.mirrors.harness import Deployment, deployment

pytestmark = pytest.mark.django_db

OK, WARNING, FAILED, UNKNOWN = CheckOutcome
PLAN = Plan("lake", "us-east-1", "lake-eu", "eu-west-1", "s3://dst/lake")
DOWN = Unreachable("http://eu did not answer")
REFUSED = Denied("http://us answered 403 AccessDenied")
PREFLIGHT = f"{MIRRORS}/preflight"
REMOVAL = LifecycleRule("deleted", True, "lake/", expires_noncurrent=True, expires_markers=True)


@pytest.fixture
def lm() -> Iterator[Deployment]:
    """Two regions between which everything is in order, and no mirror yet."""
    with deployment() as made:
        made.lake.commit()
        Lake(made.eu, made.eu_store, "orders", "s3://dst/orders").commit()
        made.us_store.bucket_versioning["src"] = made.eu_store.bucket_versioning["dst"] = "Enabled"
        made.us_store.rules["src"] = [ReplicationRule("to-eu", True, "", "dst", delete_markers=True)]
        made.eu_store.lifecycle["dst"] = [REMOVAL]
        deployments.announce()
        yield made


def ask(owner: User, **change: Any) -> Preflight:
    return preflight(actor=owner, plan=replace(PLAN, **change))


def the(found: Preflight, check_id: str) -> Check:
    (check,) = [check for check in found.checks if check.id == check_id]
    return check


# --- when all is well -------------------------------------------------------------------------------------------------


def test_a_plan_that_nothing_stands_in_the_way_of_passes(lm: Deployment, owner: User) -> None:
    lm.arrive()
    found = ask(owner)
    assert found.ok
    by_state = {state: [check.id for check in found.checks if check.state is state] for state in CheckOutcome}
    assert by_state[FAILED] == by_state[WARNING] == []
    assert all("-right:" in check_id for check_id in by_state[UNKNOWN])
    assert {*by_state[OK]} >= DECIDING
    assert len({check.id for check in found.checks}) == len(found.checks)
    assert all(check.message and (check.fix == "") is (check.state is OK) for check in found.checks)


def test_nothing_is_stored_or_changed(lm: Deployment, owner: User) -> None:
    before = repr([fake.repositories for fake in (lm.us, lm.eu)]), dict(lm.us_store.objects), dict(lm.eu_store.objects)
    ask(owner)
    after = repr([fake.repositories for fake in (lm.us, lm.eu)]), dict(lm.us_store.objects), dict(lm.eu_store.objects)
    assert before == after
    assert not (Mirror.objects.exists() or Repository.objects.exists())
    assert not AuditEvent.objects.filter(action="fs:MirrorRepository", refused=False).exists()


def test_each_right_of_the_policy_is_tried_or_said_not_to_be(lm: Deployment, owner: User) -> None:
    narrow = builtin.replicator_for(source="lake", mirror="lake-eu", namespace="s3://dst/lake")
    found = ask(owner, tags=True)
    for side, statements in (("source", [1]), ("destination", [0, 2, 3])):
        granted = {action for number in statements for action in narrow["statement"][number]["action"]}
        assert {*tries_of(side, tags=True)} | {*UNTRIED[side]} == granted
        for action in granted:
            assert the(found, f"{side}-right:{action}").state is (UNKNOWN if action in UNTRIED[side] else OK)


def test_tags_are_listed_for_who_follows_the_garbage_collection_and_not_written(lm: Deployment, owner: User) -> None:
    found = ask(owner, managed=True, follows_gc=True)
    tried = {check.id for check in found.checks if check.id.endswith(("Tag", "Tags"))}
    assert tried == {"source-right:fs:ListTags", "destination-right:fs:ListTags"}


# --- what may be wrong ------------------------------------------------------------------------------------------------

Break = Callable[[Deployment], Any]


def says(fake: str, method: str, error: LakeMirrorError) -> Break:
    return lambda lm: getattr(lm, fake).failing.update({method: error})


def rules(*rules: ReplicationRule) -> Break:
    return lambda lm: lm.us_store.rules.update(src=list(rules))


def lifecycle(*rules: LifecycleRule) -> Break:
    return lambda lm: lm.eu_store.lifecycle.update(dst=list(rules))


def store(name: str, **values: Any) -> Break:
    return lambda lm: [setattr(getattr(lm, name), key, value) for key, value in values.items()]


def shows_elsewhere(lm: Deployment) -> None:
    """Of whatever it lacks, the destination's store shows others what the source has."""
    lm.eu_store.elsewhere = {uri.replace("s3://src/", "s3://dst/") for uri in lm.us_store.objects}


def all_arrived(lm: Deployment) -> None:
    """There is nothing by which that could show, and a rule that leads back."""
    lm.arrive()
    lm.eu_store.rules["dst"] = [ReplicationRule("back", True, "", "src")]


WRONG: list[tuple[str, Break, CheckOutcome, str, str]] = [
    ("source-reachable", says("us", "server", DOWN), FAILED, "did not answer", "is running"),
    ("destination-reachable", says("eu", "server", RemoteFailure("500")), FAILED, "500", "configured address"),
    ("source-credentials", says("us", "server", DOWN), UNKNOWN, "Could not check", ""),
    (
        "destination-credentials",
        says("eu", "server", Unauthenticated("401", hint="Let the key in")),
        FAILED,
        "refuses the key",
        "Let the key in",
    ),
    ("source-version", lambda lm: setattr(lm.us, "info", ServerInfo("1.9.2")), FAILED, "1.9.2", "Upgrade it to 1.10"),
    ("source-version", lambda lm: setattr(lm.us, "info", ServerInfo("dev")), UNKNOWN, "dev", ""),
    ("destination-version", lambda lm: setattr(lm.eu, "info", ServerInfo("2.0.0")), WARNING, "not tested", "1.84"),
    ("source-repository", lambda lm: lm.us.repositories.pop("lake"), FAILED, "no repository 'lake'", "Check the name"),
    (
        "source-repository",
        lambda lm: lm.lake.repository.branches.clear(),
        FAILED,
        "no commits on main",
        "Make a commit",
    ),
    ("source-repository", says("us", "get_commit", DOWN), UNKNOWN, "Could not check whether", ""),
    ("name", lambda lm: lm.eu.add_repository("lake-eu", "s3://x/y"), FAILED, "a repository named 'lake-eu'", "adopt"),
    ("name", says("eu", "get_repository", DOWN), UNKNOWN, "did not answer", ""),
    (
        "namespace",
        lambda lm: lm.eu.add_repository("mine", "s3://dst/lake/in"),
        FAILED,
        "overlaps that of the repository 'mine'",
        "a namespace of its own",
    ),
    ("namespace", says("eu", "list_repositories", DOWN), UNKNOWN, "can't be asked", ""),
    (
        "namespace-bucket",
        store("eu_store", down=NotFound("NoSuchBucket")),
        FAILED,
        "NoSuchBucket",
        "Create the bucket dst",
    ),
    ("namespace-bucket", store("eu_store", down=REFUSED), FAILED, "403", "s3:ListBucket on dst"),
    ("namespace-bucket", store("eu_store", down=DOWN), FAILED, "did not answer", "can reach the store"),
    (
        "namespace-content",
        lambda lm: lm.eu_store.put("s3://dst/lake/theirs", b""),
        WARNING,
        "holds objects that the source's namespace does not: theirs",
        "a namespace of its own",
    ),
    ("namespace-content", store("eu_store", down=DOWN), UNKNOWN, "Could not check what is in", ""),
    (
        "source-versioning",
        lambda lm: lm.us_store.bucket_versioning.clear(),
        FAILED,
        "Versioning of src is not enabled",
        "Enable",
    ),
    (
        "destination-versioning",
        store("eu_store", bucket_error=REFUSED),
        UNKNOWN,
        "403",
        "s3:GetBucketVersioning on dst",
    ),
    ("replication-rule", rules(), FAILED, "No replication rule of src", "with the destination dst"),
    ("replication-rule", rules(ReplicationRule("r", False, "", "dst")), FAILED, "is disabled", "Enable it"),
    ("replication-rule", rules(ReplicationRule("r", True, "raw/", "dst")), FAILED, "covers only 'raw/'", "'lake/'"),
    (
        "replication-rule",
        rules(ReplicationRule("r", True, "lake/data/", "dst")),
        FAILED,
        "not all of s3://src/lake: none copies 'lake/_lakefs/'",
        "another rule for 'lake/_lakefs/'",
    ),
    (
        "replication-rule",
        rules(
            ReplicationRule("data", True, "lake/data/", "dst"),
            ReplicationRule("commits", False, "lake/_lakefs/", "dst"),
        ),
        FAILED,
        "'commits' of src is disabled",
        "Enable it",
    ),
    (
        "replication-rule",
        rules(ReplicationRule("r", True, "", "dst", tagged=True)),
        FAILED,
        "tagged objects",
        "Create a",
    ),
    ("replication-rule", rules(ReplicationRule("r", True, "", "ap")), FAILED, "to ap, not to dst", "namespace in ap"),
    (
        "replication-rule",
        store("us_store", bucket_error=REFUSED),
        UNKNOWN,
        "403",
        "s3:GetReplicationConfiguration on src",
    ),
    (
        "replication-delete-markers",
        rules(ReplicationRule("r", True, "", "dst")),
        WARNING,
        "'r' of src does not replicate delete markers",
        "DeleteMarkerReplication",
    ),
    (
        "replication-delete-markers",
        rules(
            ReplicationRule("all", True, "", "dst", delete_markers=True, priority=1),
            ReplicationRule("data", True, "lake/data/", "dst", priority=2),
        ),
        WARNING,
        "'data' of src does not replicate delete markers",
        "DeleteMarkerReplication",
    ),
    ("replication-delete-markers", rules(), UNKNOWN, "no replication rule copies", "must also delete them"),
    (
        "replication-delete-markers",
        store("us_store", bucket_error=REFUSED),
        UNKNOWN,
        "403",
        "s3:GetReplicationConfiguration on src",
    ),
    ("destination-lifecycle", lifecycle(), WARNING, "no lifecycle rule of dst", "'lake/' with Noncurrent"),
    ("destination-lifecycle", lifecycle(replace(REMOVAL, enabled=False)), WARNING, "use space for ever", "for the"),
    ("destination-lifecycle", lifecycle(replace(REMOVAL, tagged=True)), WARNING, "use space for ever", "for the"),
    ("destination-lifecycle", lifecycle(replace(REMOVAL, sized=True)), WARNING, "use space for ever", "for the"),
    ("destination-lifecycle", lifecycle(replace(REMOVAL, prefix="raw/")), WARNING, "use space for ever", "for the"),
    (
        "destination-lifecycle",
        lifecycle(replace(REMOVAL, expires_noncurrent=False)),
        WARNING,
        "use space for ever",
        "NoncurrentVersionExpiration",
    ),
    (
        "destination-lifecycle",
        lifecycle(replace(REMOVAL, expires_markers=False)),
        WARNING,
        "their delete markers stay",
        "Add ExpiredObjectDeleteMarker",
    ),
    (
        "destination-lifecycle",
        store("eu_store", bucket_error=REFUSED),
        UNKNOWN,
        "403",
        "s3:GetLifecycleConfiguration on dst",
    ),
    (
        "destination-expiration",
        lifecycle(REMOVAL, LifecycleRule("old", True, "", expires_current=True)),
        FAILED,
        "'old' of dst deletes old objects in s3://dst/lake",
        "outside of 'lake/'",
    ),
    (
        "destination-expiration",
        lifecycle(LifecycleRule("part", True, "lake/data/x", sized=True, expires_current=True)),
        FAILED,
        "'part' of dst deletes old objects",
        "Remove Expiration",
    ),
    (
        "destination-expiration",
        lifecycle(LifecycleRule("cold", True, "la", archives_current="DEEP_ARCHIVE")),
        FAILED,
        "to DEEP_ARCHIVE",
        "Remove that transition",
    ),
    (
        "destination-expiration",
        store("eu_store", bucket_error=REFUSED),
        UNKNOWN,
        "403",
        "s3:GetLifecycleConfiguration on dst",
    ),
    ("source-gc-rules", says("us", "gc_rules", REFUSED), UNKNOWN, "403", "retention:GetGarbageCollectionRules on"),
    ("source-gc-rules", says("us", "gc_rules", DOWN), UNKNOWN, "did not answer", ""),
    (
        "source-right:retention:GetGarbageCollectionRules",
        says("us", "gc_rules", REFUSED),
        WARNING,
        "may not retention",
        "as the policy ReplicationPolicy does",
    ),
    ("destination-proxy", shows_elsewhere, WARNING, "serves objects that only the source has", "--proxy"),
    ("destination-proxy", store("eu_store", down=DOWN), UNKNOWN, "did not answer", "where a rule back"),
    ("destination-proxy", says("us", "get_commit", DOWN), UNKNOWN, "did not answer", "where a rule back"),
    ("destination-proxy", all_arrived, UNKNOWN, "so this can't be tried", "where a rule back"),
    (
        "source-metadata-prefix",
        lambda lm: lm.us_store.objects.clear(),
        FAILED,
        "below _lakefs/",
        "block_storage_prefix",
    ),
    (
        "destination-metadata-prefix",
        lambda lm: lm.eu.repositories.pop("orders"),
        UNKNOWN,
        "no repository there",
        "block_storage_prefix",
    ),
    ("source-store-clock", store("us_store", ahead=-1200.0), FAILED, "20 min behind", "NTP"),
    ("destination-store-clock", store("eu_store", ahead=200.0), WARNING, "ahead of", "NTP"),
    ("source-lakefs-clock", lambda lm: setattr(lm.us, "info", ServerInfo("1.84.0", 3e6)), WARNING, "ahead of", "NTP"),
    (
        "destination-lakefs-clock",
        lambda lm: setattr(lm.eu, "info", ServerInfo("1.84.0")),
        UNKNOWN,
        "does not report",
        "",
    ),
    (
        "destination-right:fs:RevertBranch",
        says("eu", "hard_reset_branch", REFUSED),
        FAILED,
        "may not fs:RevertBranch",
        "user fs:RevertBranch on arn:lakefs:fs:::repository/lake-eu/*",
    ),
    (
        "destination-right:fs:ReadRepository",
        says("eu", "get_repository", REFUSED),
        FAILED,
        "may not fs:ReadRepository",
        "as the policy ReplicationPolicy does",
    ),
    (
        "source-right:fs:ReadCommit",
        says("us", "get_commit", REFUSED),
        FAILED,
        "may not",
        "on arn:lakefs:fs:::repository/lake,",
    ),
    ("destination-right:fs:CreateCommit", says("eu", "put_commit_record", DOWN), UNKNOWN, "Could not check", ""),
]


@pytest.mark.parametrize(
    ("check_id", "breaks", "state", "message", "fix"), WRONG, ids=[f"{row[0]}-{row[2]}-{row[3]}" for row in WRONG]
)
def test_what_is_wrong_is_said_with_its_fix(
    lm: Deployment, owner: User, check_id: str, breaks: Break, state: CheckOutcome, message: str, fix: str
) -> None:
    assert the(ask(owner), check_id).state is OK
    breaks(lm)
    found = ask(owner)
    check = the(found, check_id)
    assert check.state is state, check
    assert message.casefold() in check.message.casefold()
    assert fix in check.fix
    assert found.ok is not (state is FAILED or (state is UNKNOWN and check_id in DECIDING) or not found.ok)


PLANNED: list[tuple[str, dict[str, Any], CheckOutcome, str, str]] = [
    ("source-reachable", {"source_region": "mars-1"}, FAILED, "Unknown region 'mars-1'", ""),
    ("destination-reachable", {"region": "mars-1"}, FAILED, "Unknown region 'mars-1'", ""),
    ("source-repository", {"source_repository": "No Name"}, FAILED, "no repository 'No Name'", "Check the name"),
    ("branches", {"include": ("main", "nope-*")}, WARNING, "1 of 1 branch", "globs"),
    ("branches", {"exclude": ("main",)}, FAILED, "can't be excluded", "Remove it"),
    ("name", {"name": "Not A Name"}, FAILED, "is not a valid mirror name", "lower-case"),
    ("name", {"name": "new"}, FAILED, "is a page of LakeMirror's own", "another name"),
    ("name", {"name": "lake", "region": "us-east-1"}, FAILED, "is the source itself", "another name"),
    ("name", {"adopt": True}, FAILED, "no such repository to adopt", "Use the name of an existing repository"),
    ("namespace", {"storage_namespace": "/tmp/x"}, FAILED, "is not a storage namespace", "s3://bucket/prefix"),
    ("namespace", {"storage_namespace": "s3://src/lake/in"}, FAILED, "overlaps the source's", "of its own"),
    (
        "replication-rule",
        {"storage_namespace": "s3://dst/other"},
        FAILED,
        "arrive in s3://dst/lake",
        "Use s3://dst/lake",
    ),
    ("source-right:fs:ListTags", {"tags": True}, OK, "may fs:ListTags", ""),
]


@pytest.mark.parametrize(
    ("check_id", "change", "state", "message", "fix"), PLANNED, ids=[f"{row[0]}-{row[3]}" for row in PLANNED]
)
def test_what_was_planned_wrongly_is_said_with_its_fix(
    lm: Deployment, owner: User, check_id: str, change: dict[str, Any], state: CheckOutcome, message: str, fix: str
) -> None:
    found = ask(owner, **change)
    check = the(found, check_id)
    assert check.state is state, check
    assert message in check.message and fix in check.fix
    assert found.ok is (state is not FAILED)


def test_an_overlap_with_a_mirror_and_its_name_are_said_too(lm: Deployment, owner: User) -> None:
    lm.add_mirror()
    found = ask(owner, storage_namespace="s3://dst/lake/inside")
    assert "overlaps that of the mirror 'lake-eu'" in the(found, "namespace").message
    assert "a mirror named 'lake-eu' exists" in the(found, "name").message.casefold()


def test_another_repository_in_place_of_the_source_is_said(lm: Deployment, owner: User) -> None:
    lm.add_mirror()
    Repository.objects.update(creation_date=1)
    check = the(ask(owner), "source-repository")
    assert check.state is FAILED and "Delete the mirrors" in check.fix


def test_what_was_there_before_the_rule_is_counted(lm: Deployment, owner: User) -> None:
    check = the(ask(owner), "existing-objects")
    assert (check.state, "are not in s3://dst/lake" in check.message) == (WARNING, True)
    assert "S3 Batch Replication" in check.fix
    lm.arrive()
    assert the(ask(owner), "existing-objects").state is OK
    lm.eu_store.down = DOWN
    assert the(ask(owner), "existing-objects").state is UNKNOWN


def test_the_store_is_asked_since_when_what_is_lacking_lies_there(lm: Deployment, owner: User) -> None:
    lm.replication.away = None
    lm.replication.store_kind = StoreKind.MINIO
    check = the(ask(owner), "existing-objects")
    assert f"Of the first {len(lm.us_store.objects)} the store has" in check.message
    assert "written before the rule, or while it was off, the last one at" in check.message
    assert "mc replicate resync" in check.fix
    assert set(lm.replication.asked) == set(lm.us_store.objects)


def test_branches_without_the_action_file_are_named(lm: Deployment, owner: User) -> None:
    assert the(ask(owner), "source-webhook").message.startswith("No branch of 'lake' has")
    lm.lake.repository.branches["dev"] = lm.lake.repository.branches["main"]
    lm.lake.commit(files={ACTION_FILE: b"name: tell LakeMirror"})
    check = the(ask(owner), "source-webhook")
    assert (check.state, "1 of 2 branches (dev) lacks" in check.message) == (WARNING, True)
    assert the(ask(owner, exclude=("dev",)), "source-webhook").state is OK, "it is not mirrored"
    assert not [check for check in ask(owner).checks if check.id == "source-hold-file"]
    holding = the(ask(owner, holds=True, exclude=("dev",)), "source-hold-file")
    assert (holding.state, "2 of 2 branches (main, dev) lack" in holding.message) == (WARNING, True)


def test_two_rules_that_cover_the_namespace_together_are_in_order(lm: Deployment, owner: User) -> None:
    rules(
        ReplicationRule("objects", True, "lake/data/", "dst", delete_markers=True),
        ReplicationRule("commits", True, "lake/_lakefs/", "dst"),
    )(lm)
    found = ask(owner)
    told = the(found, "replication-rule")
    assert (told.state, "'objects' and 'commits' of src together copy" in told.message) == (OK, True)
    assert the(found, "replication-delete-markers").state is OK


def test_rules_that_leave_the_namespace_alone_are_in_order(lm: Deployment, owner: User) -> None:
    others = [
        LifecycleRule("elsewhere", True, "logs/", expires_current=True),
        LifecycleRule("off", False, "", expires_current=True),
        LifecycleRule("tagged", True, "", tagged=True, expires_current=True, archives_current="GLACIER"),
    ]
    lifecycle(REMOVAL, *others)(lm)
    found = ask(owner)
    assert the(found, "destination-expiration").state is the(found, "destination-lifecycle").state is OK


def test_only_what_replication_put_there_is_in_order(lm: Deployment, owner: User) -> None:
    lm.arrive()
    lm.eu_store.put("s3://dst/lake/_lakemirror/mirror.json", b"{}")
    check = the(ask(owner), "namespace-content")
    assert check.state is OK and "which the source's namespace holds too" in check.message


def test_a_mirror_made_by_hand_can_be_adopted_or_why_not(lm: Deployment, owner: User) -> None:
    made = lm.eu.add_repository("lake-eu", "s3://dst/lake", read_only=True)
    made.branches["main"] = lm.lake.repository.branches["main"]
    assert "can be adopted" in the(ask(owner, adopt=True), "name").message
    made.branches["main"] = "e" * 64
    check = the(ask(owner, adopt=True), "name")
    assert check.state is FAILED and "has another history" in check.message


def test_the_rules_of_garbage_collection_are_told_and_those_of_an_adopted_repository_compared(
    lm: Deployment, owner: User
) -> None:
    assert "will be created" in the(ask(owner), "destination-gc-rules").message
    assert "has no garbage-collection rules" in the(ask(owner), "source-gc-rules").message
    made = lm.eu.add_repository("lake-eu", "s3://dst/lake", read_only=True)
    made.branches["main"] = lm.lake.repository.branches["main"]
    lm.us.gc["s3://src/lake"] = lm.eu.gc["s3://dst/lake"] = GcRules(21, {"main": 28})
    assert "21 days, main 28 days" in the(ask(owner), "source-gc-rules").message
    same = the(ask(owner, adopt=True), "destination-gc-rules")
    assert (same.state, same.message) == (OK, "'lake-eu' has no garbage-collection rules but those of 'lake'")
    lm.eu.gc["s3://dst/lake"] = GcRules(7)
    own = the(ask(owner, adopt=True), "destination-gc-rules")
    assert own.state is WARNING and "(7 days; those of lake: 21 days, main 28 days)" in own.message
    assert "save those of lake again" in own.fix
    del lm.us.gc["s3://src/lake"]
    own = the(ask(owner, adopt=True), "destination-gc-rules")
    assert "delete s3://dst/lake/_lakefs/retention/gc/rules/config.json" in own.fix
    lm.eu.failing["gc_rules"] = REFUSED
    unread = the(ask(owner, adopt=True), "destination-gc-rules")
    assert unread.state is UNKNOWN and "repository/lake-eu" in unread.fix


def test_nobodys_repository_is_tried_for_rights(lm: Deployment, owner: User) -> None:
    """Somebody may type the name of a repository on the way to another one."""
    lm.eu.add_repository("lake-eu", "s3://x/y")
    lm.eu.calls.clear()
    found = ask(owner)
    assert not {"create_branch", "hard_reset_branch", "delete_branch", "put_commit_record"} & {*lm.eu.calls}
    assert the(found, "destination-right:fs:CreateBranch").state is UNKNOWN
    assert the(found, "destination-right:fs:ListBranches").state is OK


@pytest.mark.parametrize("rest", ["an object", "nothing"])
def test_a_store_that_shows_what_only_the_source_has_is_found_by_whatever_lacks(
    lm: Deployment, owner: User, rest: str
) -> None:
    """The newest metarange has arrived; an object perhaps not."""
    last = lm.lake.address_of(lm.lake.commit(files={"a": b"1"}), "a")
    lm.arrive(*([last] if rest == "an object" else []))
    shows_elsewhere(lm)
    check = the(ask(owner), "destination-proxy")
    assert check.state is (WARNING if rest == "an object" else OK)
    assert (f"such as {last}" in check.message) is (rest == "an object")


def test_a_repository_without_commits_shows_nothing_of_its_destinations_store(lm: Deployment, owner: User) -> None:
    lm.lake.repository.branches.clear()
    shows_elsewhere(lm)
    assert the(ask(owner), "destination-proxy").state is OK
    lm.eu_store.rules["dst"] = [ReplicationRule("back", True, "", "src")]
    assert the(ask(owner), "destination-proxy").state is UNKNOWN


# --- what a pass is ---------------------------------------------------------------------------------------------------


def test_nothing_checked_is_no_pass(owner: User, lm: Deployment) -> None:
    assert not Preflight([], module.clock.now()).ok
    every = [Check(check_id, UNKNOWN, "") for check_id in DECIDING]
    assert not Preflight(every, module.clock.now()).ok


def test_a_check_that_breaks_is_unknown_and_the_others_go_on(
    lm: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(lm.eu, "server", broken)
    monkeypatch.setattr(module.placement, "check_name", broken)
    found = ask(owner)
    assert (the(found, "name").state, the(found, "destination-version").state) == (UNKNOWN, UNKNOWN)
    assert the(found, "destination-reachable").state is not OK
    assert the(found, "source-reachable").state is OK and not found.ok


def test_what_takes_too_long_is_unknown(lm: Deployment, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "ROUND_SECONDS", 0.2)
    monkeypatch.setattr(lm.us_store, "versioning", lambda uri: time.sleep(1))
    began = time.monotonic()
    check = the(ask(owner), "source-versioning")
    assert time.monotonic() - began < 0.9
    assert check.state is UNKNOWN and "no answer within 0.2 s" in check.message


def test_who_waits_has_adapters_that_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (clients.quick_lakefs("us-east-1").tries, clients.quick_objects("us-east-1").tries) == (1, 1)
    assert clients.quick_lakefs("us-east-1").read_seconds == clients.quick_objects("us-east-1").read_seconds == 4


# --- the API ----------------------------------------------------------------------------------------------------------


def test_the_api_gives_every_check_and_stores_nothing(lm: Deployment, api: Api) -> None:
    status, answer = api.call("POST", PREFLIGHT, BODY | {"branches": {"include": ["main"]}, "paused": True})
    assert (status, answer["ok"]) == (200, True)
    assert answer["as_of"].endswith("Z")
    assert {*answer["checks"][0]} == {"id", "state", "message", "fix"}
    assert not Mirror.objects.exists()
    status, answer = api.call("POST", PREFLIGHT, BODY | {"storage_namespace": "s3://src"})
    failed = {check["id"]: check["fix"] for check in answer["checks"] if check["state"] == "failed"}
    assert (status, answer["ok"]) == (200, False)
    assert failed["namespace"] == "Choose a namespace of its own for the mirror"


@pytest.mark.parametrize("body", [{}, [], BODY | {"unknown": 1}, BODY | {"paused": "yes"}])
def test_a_body_that_creation_would_not_read_is_refused(lm: Deployment, api: Api, body: Any) -> None:
    assert api.call("POST", PREFLIGHT, body)[0] == api.call("POST", MIRRORS, body)[0] == 400


def test_who_may_not_make_the_mirror_may_not_ask(lm: Deployment, teammate: User) -> None:
    status, answer = Api(teammate).call("POST", PREFLIGHT, BODY)
    assert status == 403 and "fs:CreateRepository" in answer["message"]
    assert lm.us.calls == lm.eu.calls == []


def test_a_mirror_of_that_name_keeps_its_address(lm: Deployment, api: Api) -> None:
    lm.add_mirror()
    Mirror.objects.update(name="preflight")
    assert api.call("GET", PREFLIGHT)[1]["name"] == "preflight"
    assert api.call("PATCH", PREFLIGHT, {"paused": True})[1]["paused"] is True
