"""The pages of access: users, groups, policies, keys, and questions tried out."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.access.policy_text import pretty
from rbac import services
from rbac.models import AccessKey, Group, Policy, User
from rbac.views.policy_templates import TEMPLATES, Template

pytestmark = pytest.mark.django_db

LAKE = "arn:lakefs:fs:::repository/lake"


@pytest.fixture
def olga(owner: User, client: Client) -> Client:
    client.force_login(owner)
    return client


def text(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


def test_every_page_opens(olga: Client, teammate: User) -> None:
    services.key_create(actor="system:tests", user=teammate)
    for address in (
        "users/",
        "users/?find=zz",
        "users/tom/",
        "users/tom/edit/",
        "users/tom/delete/",
        "users/tom/keys/",
        "new-user/",
        "groups/",
        "groups/Viewers/",
        "groups/Viewers/delete/",
        "new-group/",
        "policies/",
        "policies/ReadAll/",
        "policies/ReadAll/edit/",
        "policies/ReadAll/edit/?as=json",
        "policies/ReadAll/delete/",
        "new-policy/",
        "new-policy/?template=empty",
        "new-policy/?template=replicator-for",
        "keys/",
        "simulate/",
        "simulate/?user=tom&action=fs:ReadObject&arn=*",
    ):
        answer = olga.get(f"/access/{address}")
        assert answer.status_code == 200, address
        assert "None" not in text(answer).replace("None:", "").replace("None.", ""), address


def test_a_user_is_made_gets_rights_loses_them_and_goes(olga: Client, owner: User) -> None:
    given = {"username": "ann", "email": "ann@example.com", "groups": ["Viewers"]}
    assert olga.post("/access/new-user/", given).status_code == 302
    ann = User.objects.get(username="ann")
    assert services.allowed(ann, "fs:ReadObject", LAKE) and not ann.has_usable_password()
    olga.post("/access/users/ann/policy/", {"policy": "MirrorAdmin"})
    assert "MirrorAdmin, 2" in text(olga.get("/access/users/ann/"))
    olga.post("/access/users/ann/policy/", {"policy": "MirrorAdmin", "out": "1"})
    olga.post("/access/users/ann/group/", {"group": "Viewers", "out": "1"})
    assert "ann has no permissions" in text(olga.get("/access/users/ann/"))
    olga.post("/access/users/ann/disable/")
    assert not User.objects.get(username="ann").is_active
    olga.post("/access/users/ann/delete/", {"reason": "left"})
    assert not User.objects.filter(username="ann").exists()
    assert AuditEvent.objects.filter(action="auth:DeleteUser", reason="left", actor="olga").exists()


def test_a_wrong_name_stands_beside_its_field_and_the_last_administrator_stays(olga: Client) -> None:
    answer = olga.post("/access/new-user/", {"username": "a b"})
    assert answer.status_code == 400 and 'id="id_username_error"' in text(answer)
    assert "no one would be left who can administer access" in text(
        olga.post("/access/users/olga/disable/", follow=True)
    )
    assert User.objects.get(username="olga").is_active


def test_a_group_is_made_filled_and_deleted(olga: Client, outsider: User) -> None:
    olga.post("/access/new-group/", {"name": "Makers", "description": "Make mirrors"})
    olga.post("/access/groups/Makers/policy/", {"policy": "MirrorAdmin"})
    olga.post("/access/groups/Makers/add/", {"user": "otto"})
    assert services.allowed(User.objects.get(username="otto"), "fs:MirrorRepository", LAKE)
    assert "there is no user" in text(olga.post("/access/groups/Makers/add/", {"user": "nobody"}, follow=True))
    olga.post("/access/groups/Makers/delete/", {"reason": "done"})
    assert not Group.objects.filter(name="Makers").exists()


def test_what_no_database_takes_is_refused(olga: Client, outsider: User) -> None:
    for address, field in (
        ("users/otto/group/", "group"),
        ("groups/Viewers/add/", "user"),
        ("users/otto/policy/", "policy"),
    ):
        assert olga.post(f"/access/{address}", {field: "a\0b"}).status_code == 400, address
    assert "Not deleted" in text(olga.post("/access/users/otto/delete/", {"reason": "\0"}, follow=True))
    assert User.objects.filter(username="otto").exists()


def test_a_policys_page_names_only_holders_whom_the_reader_may_see(client: Client, teammate: User, owner: User) -> None:
    reads = {"effect": "allow", "action": ["auth:ReadPolicy"], "resource": "*"}
    policy = services.policy_put(actor="system:tests", document={"id": "reads", "statement": [reads]})
    services.policy_attach(actor="system:tests", policy=policy, user=teammate)
    client.force_login(teammate)
    assert "Attached to 1 user or group." in text(client.get("/access/policies/reads/"))


# --- keys -------------------------------------------------------------------------------------------------------------


def test_a_key_is_shown_once_rotated_and_disabled(client: Client, teammate: User) -> None:
    client.force_login(teammate)
    made = client.post("/access/users/tom/new-key/", {"description": "nightly", "days": "30"})
    key = AccessKey.objects.get(user=teammate)
    assert key.key_id in text(made) and "no-store" in made["Cache-Control"]
    assert key.expires_at and "<code>AKIA" in text(client.get("/access/keys/"))
    client.post(f"/access/users/tom/keys/{key.key_id}/rotate/", {"overlap": "3600"})
    both = AccessKey.objects.filter(user=teammate).order_by("created_at")
    assert len(both) == 2 and both[0].expires_at < both[1].expires_at
    client.post(f"/access/users/tom/keys/{key.key_id}/disable/")
    refused = client.post(f"/access/users/tom/keys/{key.key_id}/rotate/", {"overlap": "0"})
    assert refused.status_code == 409 and "no longer works" in text(refused)
    client.post(f"/access/users/tom/keys/{key.key_id}/delete/")
    assert not AccessKey.objects.filter(key_id=key.key_id).exists()


def test_keys_of_others_need_the_right(client: Client, teammate: User, owner: User) -> None:
    client.force_login(teammate)
    assert client.get("/access/users/olga/keys/").status_code == 403
    assert client.post("/access/users/olga/new-key/", {"days": "30"}).status_code == 403


# --- policies ---------------------------------------------------------------------------------------------------------

BLANKS = {"template": "replicator-for", "source": "lake", "mirror": "lake-eu", "namespace": "s3://dst/lake"}


def seal(answer: Any) -> str:
    return text(answer).partition('name="seal" value="')[2].partition('"')[0]


def rows(*statements: tuple[str, str, str], **more: str) -> dict[str, Any]:
    effects, actions, resources = zip(*statements, strict=True)
    return {"mode": "form", "effect": effects, "actions": actions, "resources": resources} | more


def test_a_policy_is_made_of_a_template_whose_blanks_are_filled(olga: Client) -> None:
    wrong = olga.get("/access/new-policy/", BLANKS | {"namespace": "here"})
    assert wrong.status_code == 400 and "is not a storage namespace" in text(wrong)
    document = TEMPLATES["replicator-for"].fill(BLANKS)
    typed = {"mode": "json", "text": pretty(document)}
    assert "Replicator-lake-eu" in text(olga.get("/access/new-policy/", BLANKS | {"as": "json"}))
    reviewed = olga.post("/access/new-policy/", typed | {"do": "review"})
    olga.post("/access/new-policy/", typed | {"do": "save", "seal": seal(reviewed)})
    assert Policy.objects.get(name="Replicator-lake-eu").document == document
    again = olga.post("/access/new-policy/", typed | {"do": "review"})
    assert again.status_code == 400 and "A policy Replicator-lake-eu exists already" in text(again)


@pytest.mark.parametrize("template", [one for one in TEMPLATES.values() if not one.blanks], ids=lambda one: one.key)
def test_every_template_begins_a_policy(olga: Client, template: Template) -> None:
    answer = olga.get("/access/new-policy/", {"template": template.key})
    assert answer.status_code == 200 and "Statement 1" in text(answer)


def test_nothing_is_saved_but_what_was_reviewed(olga: Client, owner: User, teammate: User) -> None:
    edit, narrower = "/access/policies/ReadAll/edit/", ("allow", "fs:ReadObject", "*")
    reviewed = olga.post(edit, rows(narrower, name="ReadAll", do="review"))
    told = text(reviewed)
    assert "See a mirror, its jobs and its alerts" in told and "Lost by tom" in told
    assert '<code class="removed">' in told and '<code class="added">' in told
    other = rows(("allow", "fs:*", "*"), name="ReadAll", do="save", seal=seal(reviewed))
    assert "Not saved yet" in text(olga.post(edit, other))
    olga.post(edit, rows(narrower, name="ReadAll", do="save", seal=seal(reviewed), reason="too wide"))
    saved = Policy.objects.get(name="ReadAll").statement
    assert saved == [{"effect": "allow", "action": ["fs:ReadObject"], "resource": "*"}]
    assert AuditEvent.objects.filter(action="auth:UpdatePolicy", reason="too wide", actor="olga").exists()


def test_somebody_elses_change_meanwhile_is_seen_before_it_is_overwritten(olga: Client) -> None:
    edit, draft = "/access/policies/ReadAll/edit/", rows(("allow", "fs:ReadObject", "*"), name="ReadAll")
    reviewed = olga.post(edit, draft | {"do": "review"})
    services.policy_put(
        actor="system:tests",
        document={"id": "ReadAll", "statement": [{"effect": "deny", "action": ["fs:*"], "resource": "*"}]},
    )
    assert "Not saved yet" in text(olga.post(edit, draft | {"do": "save", "seal": seal(reviewed)}))


def test_what_is_wrong_in_json_is_told_with_its_line(olga: Client) -> None:
    wrong = '{\n"id": "ReadAll",\n"statement": [\n{"effect": "allow", "action": ["lake"], "resource": "*"}]}'
    answer = olga.post("/access/policies/ReadAll/edit/", {"mode": "json", "text": wrong, "do": "review"})
    assert answer.status_code == 400 and "Line 4: action of statement 1" in text(answer)
    renamed = olga.post("/access/policies/ReadAll/edit/", rows(("allow", "fs:*", "*"), name="Other", do="review"))
    assert renamed.status_code == 400 and "can&#x27;t be changed" in text(renamed)


def test_the_form_and_the_json_are_two_sides_of_one_draft(olga: Client) -> None:
    edit = "/access/policies/ReadAll/edit/"
    as_json = text(olga.post(edit, rows(("deny", "fs:Read*\nfs:List*", f"{LAKE}\n*"), name="ReadAll", do="json")))
    assert "fs:List*" in as_json and "&quot;deny&quot;" in as_json and "\\&quot;*\\&quot;" in as_json
    typed = {"mode": "json", "do": "form", "text": pretty(Policy.objects.get(name="ReadAll").document)}
    assert "fs:List*" in text(olga.post(edit, typed)) and 'name="actions"' in text(olga.post(edit, typed))
    more = text(olga.post(edit, rows(("allow", "fs:*", "*"), name="ReadAll", do="add")))
    assert "Statement 2" in more


def test_deleting_a_policy_says_what_nobody_could_do_any_more(olga: Client, teammate: User) -> None:
    assert "Lost by tom" in text(olga.get("/access/policies/ReadAll/delete/"))
    olga.post("/access/policies/ReadAll/delete/", {"reason": "not needed"})
    assert not Policy.objects.filter(name="ReadAll").exists()


# --- who sees what ----------------------------------------------------------------------------------------------------


def test_who_may_not_list_sees_only_their_own(client: Client, teammate: User) -> None:
    client.force_login(teammate)
    for address in ("users/", "groups/", "policies/", "users/olga/", "simulate/?user=olga", "new-user/", "new-policy/"):
        assert client.get(f"/access/{address}").status_code == 403, address
    shown = text(client.get("/access/simulate/?action=fs:ReadObject&arn=*"))
    assert ">Access</a>" not in shown and "Allowed" in shown and "ReadAll" in shown
    assert client.get("/access/")["Location"] == "/access/keys/"


def test_a_question_that_is_none_is_told_beside_its_field(olga: Client) -> None:
    answer = olga.get("/access/simulate/?action=nix&arn=*")
    assert answer.status_code == 400 and "&#x27;nix&#x27; is not an action" in text(answer)
    assert olga.get("/access/simulate/?user=nobody").status_code == 404
