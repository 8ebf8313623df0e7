"""Every change is written down with who, what and why; nothing written is changed."""

from __future__ import annotations

import pytest
from django.test import Client, RequestFactory

from audit.models import AuditEvent
from audit.querysets import AppendOnly
from rbac import services
from rbac.models import User
from web import requests


@pytest.fixture
def event(owner: User) -> AuditEvent:
    return services.audit(actor=owner, right=("fs:MirrorRepository", "arn:lakefs:fs:::repository/lake"), verb="change")


def test_an_event_is_never_saved_again(event: AuditEvent) -> None:
    event.reason = "another"
    with pytest.raises(AppendOnly):
        event.save()
    with pytest.raises(AppendOnly):
        AuditEvent.objects.get(pk=event.pk).save(update_fields=["reason"])


def test_an_event_is_never_deleted(event: AuditEvent) -> None:
    with pytest.raises(AppendOnly):
        event.delete()
    with pytest.raises(AppendOnly):
        AuditEvent.objects.all().delete()


def test_events_are_not_changed_in_bulk_either(event: AuditEvent) -> None:
    with pytest.raises(AppendOnly):
        AuditEvent.objects.filter(pk=event.pk).update(actor="tom")
    with pytest.raises(AppendOnly):
        AuditEvent.objects.bulk_update([event], ["actor"])


def test_an_event_cannot_replace_another_by_its_number(event: AuditEvent) -> None:
    from django.db import IntegrityError, transaction

    with pytest.raises(IntegrityError), transaction.atomic():
        AuditEvent(pk=event.pk, actor="tom", action="x", arn="*").save()


def test_an_event_outlives_its_actor(owner: User, event: AuditEvent) -> None:
    owner.delete()
    assert AuditEvent.objects.get(pk=event.pk).actor == "olga"


def test_each_verb_leaves_one_event_with_its_actor(owner: User) -> None:
    start = AuditEvent.objects.count()
    user = services.user_create(actor=owner, username="ann", reason="joined today")
    group = services.group_create(actor=owner, name="g")
    services.group_add(actor=owner, group=group, user=user)
    document = {"id": "p", "statement": [{"effect": "allow", "action": ["fs:Read*"], "resource": "*"}]}
    policy = services.policy_put(actor=owner, document=document)
    services.policy_put(actor=owner, document=document)
    services.policy_attach(actor=owner, policy=policy, group=group)
    issued = services.key_create(actor=owner, user=user)
    services.key_disable(actor=owner, key=issued.key)
    services.policy_detach(actor=owner, policy=policy, group=group)
    services.group_remove(actor=owner, group=group, user=user)
    services.user_set_password(actor=owner, user=user, password="a long enough one")
    services.user_set_active(actor=owner, user=user, active=False)
    services.policy_delete(actor=owner, policy=policy)
    services.group_delete(actor=owner, group=group)
    events = list(AuditEvent.objects.order_by("pk")[start:])
    assert [event.action.removeprefix("auth:") for event in events] == [
        "CreateUser",
        "CreateGroup",
        "AddGroupMember",
        "CreatePolicy",
        "UpdatePolicy",
        "AttachPolicy",
        "CreateCredentials",
        "DeleteCredentials",
        "DetachPolicy",
        "RemoveGroupMember",
        "UpdateUser",
        "UpdateUser",
        "DeletePolicy",
        "DeleteGroup",
    ]
    assert {event.actor for event in events} == {"olga"}
    assert events[0].reason == "joined today"
    assert events[4].before == events[4].after == document


def test_a_change_that_fails_leaves_no_event(owner: User) -> None:
    start = AuditEvent.objects.count()
    from core.errors import LakeMirrorError

    with pytest.raises(LakeMirrorError):
        services.user_create(actor=owner, username="olga")
    assert AuditEvent.objects.count() == start


def of(**meta: str) -> AuditEvent:
    with requests.answering(RequestFactory().get("/", **meta)):
        return services.audit(actor="system:tests", right=("x", "*"), verb="change")


def test_a_plain_request_id_is_taken_over_and_another_replaced(db: None) -> None:
    assert of(HTTP_X_REQUEST_ID="abc-1").request_id == "abc-1"
    assert len(of(HTTP_X_REQUEST_ID="abc\n<script>").request_id) == 32


def test_forwarded_addresses_count_only_from_trusted_proxies(db: None, settings: object) -> None:
    meta = {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "6.6.6.6, 192.0.2.7"}
    assert of(**meta).address == "10.0.0.1"
    settings.TRUSTED_PROXIES = ["10.0.0.1"]
    assert of(**meta).address == "192.0.2.7"
    assert of(REMOTE_ADDR="", HTTP_X_FORWARDED_FOR="6.6.6.6").address is None
    assert of(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="rubbish").address == "10.0.0.1"


def test_what_a_call_changes_names_the_call_and_what_comes_after_it_none(owner: User, client: Client) -> None:
    client.force_login(owner)
    answer = client.post("/api/v1/auth/groups", {"id": "Makers"}, "application/json", headers={"X-Request-ID": "abc-1"})
    assert answer.status_code == 201
    made = AuditEvent.objects.get(action="auth:CreateGroup", arn__endswith="Makers")
    assert (made.request_id, made.address) == ("abc-1", "127.0.0.1")
    after = services.audit(actor=owner, right=("x", "*"), verb="change")
    assert (after.request_id, after.address) == ("", None)
