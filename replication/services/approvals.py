"""Deletions that wait for somebody are approved or rejected; targets and sources of links are confirmed."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core.access.rule_rights import rule_arn
from core.errors import Conflict, NotFound
from core.replicating.states import ApprovalState
from db import clock
from deployment.wiring import replication_jobs
from rbac import services as rbac
from replication.engine.building import identify, pin_of
from replication.engine.deletes import ends
from replication.models import Approval, Link, Rule
from replication.services.links import find_link
from replication.services.rules import OPERATE, find_rule
from replication.transitions import deletions, duties, freezing, ledger, manifests, tombstones

APPROVE = "fs:ApproveReplicationDeletes"


def find_approval(rule: Rule, number: int) -> Approval:
    """The approval with this id. Raises NotFound."""
    rows = Approval.objects.filter(link__rule=rule, pk=number).select_related("link__rule")
    found = rows.first() if number < 2**63 else None
    if found is None:
        raise NotFound(f"the rule '{rule.name}' has no deletions {number} that wait")
    return found


def approval_decide(*, actor: Any, name: str, number: int, approved: bool, reason: str = "") -> Approval:
    """Have exactly these deletions done, or drop them until something changes. Raises Denied, NotFound, and Conflict
    for what somebody has decided already, has expired, or is of a link that is frozen or stale."""
    right = (APPROVE, rule_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        found = find_approval(find_rule(name), number)
        link = ledger.hold(found.link_id)
        found.refresh_from_db()
        _check_open(found, link, approved)
        state = ApprovalState.APPROVED if approved else ApprovalState.REJECTED
        if not approved and ends.follows(found.link.rule):
            tombstones.pardon(ends.source_of(found.link.rule), found.pk)
        objects = deletions.decide(found, state, str(actor), clock.now())
        duties.wake_links([found.link_id])
        after = {"approval": number, "state": state.value, "objects": objects}
        verb = Verb.APPROVE if approved else Verb.REJECT
        rbac.audit(actor=actor, right=right, verb=verb, subject=found.link.audit_name, after=after, reason=reason)
    found.refresh_from_db()
    return found


def _check_open(approval: Approval, link: Link | None, approved: bool) -> None:
    """Raises Conflict unless it waits."""
    if link is None or approval.state not in (ApprovalState.WAITING, ApprovalState.EXPIRED):
        raise Conflict(f"these deletions are {approval.state} already", hint="Look at those that wait now")
    if approval.state == ApprovalState.EXPIRED or approval.expires_at <= clock.now():
        hint = "Compare the rule again: what is still to be deleted is asked for anew"
        raise Conflict("these deletions have expired", hint=hint)
    if approved and (link.frozen_since or link.stale_since):
        what, why = ("frozen", link.frozen_message) if link.frozen_since else ("stale", link.stale_message)
        raise Conflict(f"the link is {what}: {why}", hint="Confirm its source or target first")


def confirm_target(*, actor: Any, name: str, number: int) -> Link:
    """The target is the right one, as it is now: its pin is written anew, and what it lacks is copied. Raises Denied,
    NotFound, Conflict for a link that is not stale, and what the store answers."""
    right = (OPERATE, rule_arn(name))
    rbac.require(actor, right)
    link = find_link(find_rule(name), number)
    if link.stale_since is None:
        raise Conflict(f"the target of link {number} needs no confirmation: it is the one that was pinned")
    identify(link)
    try:
        target = replication_jobs.quick_place_of(link.region, link.uri)
        pin_of(link, target, replication_jobs.quick_pin_place_of(link.region, link.uri)).write()
    except NotFound as error:
        raise Conflict(error.message, hint="Create the bucket first") from error
    with transaction.atomic():
        _forget_what_was_there(link)
        held = ledger.hold(link.pk)
        if held is None:
            raise NotFound(f"the rule '{name}' has been deleted")
        freezing.refresh(held, clock.now())
        _look_anew(link)
        _audit(actor, right, link, {"confirmed": "target"})
    link.refresh_from_db()
    return link


def _forget_what_was_there(link: Link) -> None:
    """Where rules lead both ways: what the target lacks it has lost, nobody has deleted it. In a transaction."""
    if not ends.follows(link.rule):
        return
    place = ends.target_of(link)
    for pk in sorted({link.pk, *(one.pk for one in ends.links_at(place))}):
        ledger.hold(pk)
        manifests.forget_link(pk)
    tombstones.forget(place)


def confirm_source(*, actor: Any, name: str, number: int) -> Link:
    """The source is the right one, as it is now: deletions are judged anew by the next whole look. Raises Denied,
    NotFound, and Conflict for a link that is not frozen."""
    right = (APPROVE, rule_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        link = ledger.hold(find_link(find_rule(name), number).pk)
        if link is None:
            raise NotFound(f"the rule '{name}' has been deleted")
        if link.frozen_since is None:
            raise Conflict(f"the source needs no confirmation for link {number}: it is as it was")
        freezing.thaw(link)
        _look_anew(link)
        _audit(actor, right, link, {"confirmed": "source", "was": link.frozen_message})
    link.refresh_from_db()
    return link


def _look_anew(link: Link) -> None:
    Rule.objects.filter(pk=link.rule_id).update(scan_wanted=True)
    duties.wake_scan(link.rule_id)
    duties.wake_links([link.pk])


def _audit(actor: Any, right: Any, link: Link, after: dict[str, Any]) -> None:
    rbac.audit(actor=actor, right=right, verb=Verb.CHANGE, subject=link.audit_name, after=after)
