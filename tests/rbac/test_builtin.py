"""The templates give what the mirroring reference lists, what tags need, and nothing else."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from audit.models import AuditEvent
from core.access.documents import allow, policy_document
from core.access.policies import branch_arn, evaluate, namespace_arn, object_arn, parse_policy, repository_arn
from core.errors import Invalid
from rbac import services
from rbac.models import Policy, User
from rbac.services import builtin
from rbac.services.builtin_updates import old_policies
from rbac.services.policy_warnings import warnings_of
from tests.rbac.arns import tag_arn

SOURCE, MIRROR, NAMESPACE = "lake", "lake-eu", "s3://lake-eu-west-1/lake"

# What the service calls in a mirror's life, as (action, ARN) that lakeFS checks.
CALLS = [
    ("fs:ListRepositories", "*"),
    ("fs:ReadRepository", repository_arn(SOURCE)),
    ("fs:ListBranches", repository_arn(SOURCE)),
    ("fs:ReadBranch", branch_arn(SOURCE, "main")),
    ("fs:ListCommits", branch_arn(SOURCE, "main")),
    ("fs:ReadCommit", repository_arn(SOURCE)),
    ("fs:ReadObject", object_arn(SOURCE, "a/b")),
    ("fs:CreateRepository", repository_arn(MIRROR)),
    ("fs:AttachStorageNamespace", namespace_arn(NAMESPACE)),
    ("fs:ReadRepository", repository_arn(MIRROR)),
    ("fs:CreateCommit", repository_arn(MIRROR)),
    ("fs:CreateBranch", branch_arn(MIRROR, "main")),
    ("fs:RevertBranch", branch_arn(MIRROR, "main")),
    ("fs:ReadBranch", branch_arn(MIRROR, "main")),
    ("fs:DeleteBranch", branch_arn(MIRROR, "old")),
    ("fs:ListObjects", repository_arn(MIRROR)),
    ("fs:DeleteRepository", repository_arn(MIRROR)),
    ("fs:ListTags", repository_arn(SOURCE)),
    ("fs:ListTags", repository_arn(MIRROR)),
    ("fs:ReadTag", tag_arn(MIRROR, "v1")),
    ("fs:CreateTag", tag_arn(MIRROR, "v1")),
    ("fs:DeleteTag", tag_arn(MIRROR, "v1")),
    ("retention:GetGarbageCollectionRules", repository_arn(SOURCE)),
    ("retention:GetGarbageCollectionRules", repository_arn(MIRROR)),
]
# The four tables of permissions of the API.
TABLES = [
    ("fs:CreateRepository", repository_arn(MIRROR)),
    ("fs:MirrorRepository", repository_arn(SOURCE)),
    ("fs:AttachStorageNamespace", namespace_arn(NAMESPACE)),
    ("fs:DeleteRepository", repository_arn(MIRROR)),
    ("fs:ListRepositories", "*"),
]
WIDE = builtin.replicator()
NARROW = builtin.replicator_for(source=SOURCE, mirror=MIRROR, namespace=NAMESPACE)


def may(document: builtin.Document, action: str, arn: str) -> bool:
    return evaluate([parse_policy(document)], action, arn, "replicator").allowed


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("document", [WIDE, NARROW], ids=["wide", "narrow"])
def test_both_replicator_forms_allow_a_whole_mirrors_life(document: builtin.Document, call: tuple[str, str]) -> None:
    assert may(document, *call)


@pytest.mark.parametrize(
    ("action", "arn"),
    [
        ("fs:DeleteRepository", repository_arn(SOURCE)),
        ("fs:WriteObject", object_arn(SOURCE, "a")),
        ("fs:RevertBranch", branch_arn(SOURCE, "main")),
        ("fs:CreateTag", tag_arn(SOURCE, "v1")),
        ("retention:SetGarbageCollectionRules", repository_arn(MIRROR)),
        ("retention:PrepareGarbageCollectionCommits", repository_arn(MIRROR)),
        ("retention:GetGarbageCollectionRules", repository_arn("lake-2")),
        ("fs:DeleteTag", tag_arn(SOURCE, "v1")),
        ("fs:DeleteTag", tag_arn("lake-eu-2", "v1")),
        ("fs:ReadRepository", repository_arn("lake-2")),
        ("fs:DeleteRepository", repository_arn("lake-eu-2")),
        ("fs:AttachStorageNamespace", namespace_arn(NAMESPACE + "2")),
        ("fs:MirrorRepository", repository_arn(SOURCE)),
        ("auth:CreateUser", "arn:lakefs:auth:::user/x"),
    ],
)
def test_the_narrow_form_allows_nothing_else(action: str, arn: str) -> None:
    assert not may(NARROW, action, arn)


def test_the_wide_form_lists_the_eighteen_actions_of_the_reference_those_of_tags_and_of_rules() -> None:
    (statement,) = WIDE["statement"]
    assert statement["resource"] == "*"
    tags = {action for action in statement["action"] if "Tag" in action}
    assert tags == {"fs:CreateTag", "fs:DeleteTag", "fs:ListTags", "fs:ReadTag"}
    assert len(statement["action"]) == len(set(statement["action"])) == 18 + len(tags) + 1
    assert "retention:GetGarbageCollectionRules" in statement["action"]


@pytest.mark.parametrize("need", TABLES)
def test_mirror_admin_has_every_right_of_the_tables(need: tuple[str, str]) -> None:
    assert may(builtin.mirror_admin(), *need)


def test_who_has_mirror_admin_gets_no_rule_by_an_update_and_rule_admin_approves_nothing() -> None:
    rule, place = "arn:lakefs:fs:::replication/logs", "arn:lakefs:fs:::namespace/s3://dst"
    verbs = [f"fs:{verb}ReplicationRule" for verb in ("Create", "Read", "Update", "Delete", "Operate")]
    assert not [verb for verb in verbs if may(builtin.mirror_admin(), verb, rule)]
    assert not [verb for verb in verbs if not may(builtin.rule_admin(), verb, rule)]
    assert may(builtin.rule_admin(), "fs:AttachStorageNamespace", place)
    assert not may(builtin.rule_admin(), "fs:ApproveReplicationDeletes", rule)
    assert not may(builtin.rule_admin(), "fs:MirrorRepository", "arn:lakefs:fs:::repository/lake")


def test_mirror_admin_has_no_other_right() -> None:
    assert not may(builtin.mirror_admin(), "fs:WriteObject", object_arn(SOURCE, "a"))
    assert not may(builtin.mirror_admin(), "auth:CreateUser", "arn:lakefs:auth:::user/x")


@pytest.mark.parametrize(
    "blank",
    [
        {"source": "*"},
        {"mirror": "{mirrorId}"},
        {"namespace": "s3://bucket/*"},
        {"namespace": "bucket"},
        {"mirror": ""},
    ],
)
def test_a_badly_filled_blank_is_refused(blank: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        builtin.replicator_for(**({"source": SOURCE, "mirror": MIRROR, "namespace": NAMESPACE} | blank))


# --- what an earlier version installed --------------------------------------------------------------------------------

EARLIER = ["fs:OperateMirror", "fs:PauseExport", "fs:RunExport"]
ADDED = ("fs:AcknowledgeAlert", "fs:ManageMaintenance", "fs:OperateReplicationRule")


def installed_before(*more: str, resource: str = "*") -> Policy:
    builtin.install()
    operators = Policy.objects.get(name="Operators")
    operators.statement = [{"action": [*EARLIER, *more], "effect": "allow", "resource": resource}]
    operators.save()
    return operators


def test_what_is_installed_is_up_to_date(db: None) -> None:
    builtin.install()
    assert old_policies() == []


def test_a_policy_of_an_earlier_version_is_updated_by_a_click_and_a_command(owner: User, client: Client) -> None:
    operators = installed_before()
    [old] = old_policies()
    assert (old.name, old.lacks, old.edited) == ("Operators", ADDED, False)
    client.force_login(owner)
    page = client.get("/access/policies/").content.decode()
    assert "Built-in policies of an earlier version" in page and "fs:AcknowledgeAlert" in page
    client.post("/access/update-policies/")
    operators.refresh_from_db()
    assert operators.statement == builtin.operate()["statement"] and old_policies() == []
    assert "earlier version" not in client.get("/access/policies/").content.decode()
    event = AuditEvent.objects.latest("pk")
    assert (event.actor, event.action, event.verb) == ("olga", "auth:UpdatePolicy", "change")
    installed_before()
    out = StringIO()
    call_command("update_policies", stdout=out)
    assert out.getvalue() == f"Operators: updated, now also allows {', '.join(ADDED)}\n"
    assert old_policies() == []


@pytest.mark.parametrize(("more", "resource"), [(("fs:ReadObject",), "*"), ((), repository_arn("lake"))])
def test_a_policy_that_people_edited_stays_as_it_is(
    owner: User, client: Client, more: tuple[str, ...], resource: str
) -> None:
    operators = installed_before(*more, resource=resource)
    edited = operators.statement
    [old] = old_policies()
    assert old.edited and old.lacks == ADDED
    assert "it was edited, so it is not updated automatically" in old.sentence
    client.force_login(owner)
    page = client.get("/access/policies/").content.decode()
    assert "was edited here" in page and "/access/update-policies/" not in page
    client.post("/access/update-policies/")
    out = StringIO()
    call_command("update_policies", stdout=out)
    assert out.getvalue().startswith("Operators: not changed")
    operators.refresh_from_db()
    assert operators.statement == edited


def test_who_may_not_update_a_policy_is_told_of_it_without_the_button(teammate: User, client: Client) -> None:
    installed_before()
    put = services.policy_put(actor="system:tests", document=policy_document("Lists", allow(["auth:ListPolicies"])))
    services.policy_attach(actor="system:tests", policy=put, user=teammate)
    client.force_login(teammate)
    page = client.get("/access/policies/").content.decode()
    assert "earlier version" in page and "/access/update-policies/" not in page
    assert client.post("/access/update-policies/").status_code == 403


def test_templates_and_what_is_built_in_come_without_warnings() -> None:
    """But for the one that runs and does not look, which groups have together with the one that looks."""
    people = (builtin.viewer_of(mirror=MIRROR), builtin.operator_of(mirror=MIRROR))
    told = {document["id"]: warnings_of(parse_policy(document)) for document in (*builtin.every_one(), NARROW, *people)}
    assert {name for name, warnings in told.items() if warnings} == {"Operators"}


@pytest.mark.parametrize(
    ("action", "resource", "warning"),
    [
        ("fs:OperateMirrors", "*", "has an action fs:OperateMirrors. Did you mean fs:OperateMirror?"),
        ("fs:Mend*", "*", "has an action fs:Mend*."),
        ("fs:ListRepositories", repository_arn(MIRROR), "fs:ListRepositories is only asked for on *"),
        ("fs:ReadBranch", repository_arn(MIRROR), "it allows nothing"),
        (
            "fs:OperateMirror",
            repository_arn(MIRROR),
            "alone opens no page for “Pause and resume a mirror”: add fs:Read",
        ),
        ("auth:UpdateUser", "arn:lakefs:auth:::user/ann", "add auth:ReadUser on arn:lakefs:auth:::user/<user>"),
    ],
)
def test_a_draft_is_warned_of_what_it_would_not_do(action: str, resource: str, warning: str) -> None:
    [told] = warnings_of(parse_policy(policy_document("Draft", allow([action], resource))))
    assert warning in told


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("fs:ReadObject", object_arn("lake", "a")),
        ("fs:Read*", "*"),
        ("fs:ReadBranch", branch_arn("lake", "*")),
        ("fs:ReadBranch", repository_arn("lake*")),
        ("fs:MirrorRepository", "*"),
        ("auth:CreateCredentials", "arn:lakefs:auth:::user/${user}"),
    ],
)
def test_a_draft_that_works_is_not_warned_of_its_actions(action: str, resource: str) -> None:
    told = warnings_of(parse_policy(policy_document("Draft", allow([action], resource))))
    assert [warning for warning in told if "opens no page" not in warning] == []
