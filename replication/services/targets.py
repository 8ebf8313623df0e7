"""Targets that a rule is given later, and those that are taken from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Max

from audit.verbs import Verb
from core.access.policies import Right, namespace_arn
from core.access.rule_rights import rule_arn
from core.errors import Conflict, Invalid, NotFound
from core.exporting.destinations import check_place
from core.replicating import wishes
from core.replicating.wishes import MOST_TARGETS, RuleWish, TargetWish
from db import clock
from installations import services as installations
from mirrors.services.placement import hold_places
from rbac import services as rbac
from replication.engine.deletes import ends
from replication.models import Link, Rule
from replication.services import places, versioning
from replication.services.links import find_link
from replication.services.places import Target
from replication.services.rules import UPDATE, exactness, find_rule
from replication.transitions import duties, ledger, tombstones


def rights_to_add(name: str, uri: str) -> list[Right]:
    """What somebody needs to have a rule copy to an address, too."""
    return [(UPDATE, rule_arn(name)), ("fs:AttachStorageNamespace", namespace_arn(wishes.address(uri)))]


def check_target(*, actor: Any, name: str, wish: TargetWish) -> tuple[Rule, TargetWish, Target]:
    """The rule, and the target with its address as it is stored, if it may be stored by all that is known here: no
    store is asked. Raises Denied, NotFound, Invalid (naming the field) and Conflict."""
    rbac.require(actor, *rights_to_add(name, wish.uri))
    rule = find_rule(name)
    wishes.check_limits(wish.limits)
    checked = replace(wish, uri=check_place(wish.uri, "uri"))
    target = places.target_of(checked)
    _check_room(rule)
    places.check_beside(actor, rule, target)
    return rule, checked, target


def _check_room(rule: Rule) -> None:
    if rule.links.kept().count() >= MOST_TARGETS:
        hint = "Create another rule of the same source"
        raise Invalid(f"the rule has {MOST_TARGETS} targets, and can't have more", field="uri", hint=hint)


def link_add(
    *, actor: Any, name: str, wish: TargetWish, overwrite: bool = False, failed_checks: Sequence[str] = ()
) -> Link:
    """Copy to one more place, from now on: it is compared wholly first. `overwrite` and `failed_checks` as of a rule
    that is created.

    Raises what `check_target` does, and Unreachable; then nothing is stored.
    """
    right = (UPDATE, rule_arn(name))
    rbac.require(actor, right)
    rule, checked, target = check_target(actor=actor, name=name, wish=wish)
    places.check_apart_from_repositories(actor, [target])
    source = places.source_place(rule)
    places.check_reached(source, rule.region, [target])
    if rule.all_versions:
        versioning.check_versioned(source, rule.region, [target])
    if not overwrite:
        places.check_empty([target])
    whole = RuleWish(rule.name, rule.region, rule.uri, [checked], versions=rule.versions, conflict=rule.conflict)
    whole = replace(whole, overwrite=overwrite)
    [exact] = exactness(whole, [target])
    with transaction.atomic():
        hold_places()
        installations.hold(checked.region)
        rule = _held(rule)
        _check_room(rule)
        places.check_beside(actor, rule, target)
        link = _store(rule, checked, exact)
        after = {"region": link.region, "uri": link.uri, **checked.limits}
        after |= {"failed_checks": list(failed_checks)} if failed_checks else {}
        after |= {"overwrite": True} if overwrite else {}
        rbac.audit(actor=actor, right=right, verb=Verb.CREATE, subject=link.audit_name, after=after)
    return link


def link_remove(*, actor: Any, name: str, number: int, reason: str = "") -> None:
    """Copy to this target no more. No object is deleted there; its rows go in the background, and its place is free
    when nothing of it can write any more. Raises Denied, NotFound, and Conflict for the only one."""
    right = (UPDATE, rule_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        rule = _held(find_rule(name))
        link = find_link(rule, number)
        if rule.links.kept().count() < 2:
            raise Conflict("it is the only target of the rule", hint="Delete the rule, or add another target first")
        before = {"region": link.region, "uri": link.uri}
        # Paused for the version before, which knows of no links that go: it begins nothing more there.
        Link.objects.filter(pk=link.pk).update(removing=True, paused=True)
        Rule.objects.filter(pk=rule.pk).update(last_link=_last_number(rule))
        duties.wake_links([link.pk])
        rbac.audit(actor=actor, right=right, verb=Verb.DELETE, subject=link.audit_name, before=before, reason=reason)


def _held(seen: Rule) -> Rule:
    """The rule, whose links nobody else changes before the transaction ends. Raises NotFound once another one has its
    name."""
    ledger.hold_all(seen.pk)
    rule: Rule = Rule.objects.held(seen.name)
    if rule.pk != seen.pk:
        raise NotFound(f"the rule '{seen.name}' has been deleted, and created anew")
    return rule


def _last_number(rule: Rule) -> int:
    """The highest that one of its links has or had."""
    return max(rule.last_link, rule.links.aggregate(most=Max("number"))["most"] or 0)


def _store(rule: Rule, wish: TargetWish, exact: bool | None) -> Link:
    now, number = clock.now(), _last_number(rule) + 1
    tried = {"exact": exact, "exact_at": None if exact is None else now}
    where = {"region": wish.region, "uri": wish.uri, "added_at": now, "uncompared": True}
    where["first_store"] = places.store_of(wish)
    link: Link = Link.objects.create(rule=rule, number=number, **where, **wish.limits, **tried)
    if (place := ends.target_of(link)) in ends.only_of(rule):
        tombstones.forget(place)
    Rule.objects.filter(pk=rule.pk).update(last_link=number, scan_wanted=True)
    duties.ensure(rule)
    duties.wake_scan(rule.pk)
    return link
