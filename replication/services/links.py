"""What people do with one link of a rule: pause it, limit it, have objects tried again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core.access.policies import Right
from core.access.rule_rights import rule_arn
from core.errors import Denied, NotFound
from core.replicating import wishes
from core.replicating.wishes import STORE_BYTES
from rbac import services as rbac
from replication.models import Link, Rule, StoreLimit
from replication.services.rules import OPERATE, find_rule, pause_of, retry_open, retry_recorded
from replication.transitions import duties, ledger


def find_link(rule: Rule, number: int) -> Link:
    """The link of this number. Raises NotFound."""
    link = Link.objects.kept().filter(rule=rule, number=number).first() if number < 10**9 else None
    if link is None:
        raise NotFound(f"the rule '{rule.name}' has no link {number}")
    return link


def _held(name: str, number: int) -> Link:
    """The link, which nobody else changes before the transaction ends; its rule is not held, as whoever looks through
    the source holds links first. Raises NotFound."""
    rule = find_rule(name)
    link = ledger.hold(find_link(rule, number).pk)
    if link is None:
        raise NotFound(f"the rule '{name}' has no link {number} any more")
    link.rule = rule
    return link


def link_pause(*, actor: Any, name: str, number: int, paused: bool, stated: Mapping[str, Any] | None = None) -> Link:
    """Begin nothing more on it, or go on; as `rule_pause`. Raises Denied, NotFound and Invalid."""
    right = (OPERATE, rule_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        link = _held(name, number)
        change = pause_of(link, actor, paused=paused, stated=stated or {})
        Link.objects.filter(pk=link.pk).update(**change.columns)
        duties.wake_links([link.pk])
        _audit(actor, right, change.verb, link.audit_name, **change.recorded)
    link.refresh_from_db()
    return link


def link_limits(*, actor: Any, name: str, number: int, changes: Mapping[str, int | None]) -> Link:
    """Change how fast it copies: `workers`, `bytes_per_second`, `objects_per_second`, None for no limit of the last
    two; also while it does. `store_bytes_per_second` is what all links to its store may do together: that needs the
    right on all their rules. Raises Denied, NotFound, and Invalid naming the field."""
    right = (OPERATE, rule_arn(name))
    rbac.require(actor, right)
    changes, of_store = dict(changes), changes.get(STORE_BYTES)
    shared = changes.pop(STORE_BYTES, False) is not False
    wishes.check_limits(changes)
    wishes.check_store_limit(of_store)
    with transaction.atomic():
        link = _held(name, number)
        if shared:
            _limit_store(actor, link, of_store)
        before = {key: getattr(link, key) for key, value in changes.items() if getattr(link, key) != value}
        if before:
            after = {key: changes[key] for key in before}
            Link.objects.filter(pk=link.pk).update(**after)
            duties.wake_links([link.pk])
            _audit(actor, right, Verb.CHANGE, link.audit_name, before=before, after=after)
    link.refresh_from_db()
    return link


def store_limit(region: str) -> int | None:
    """What all links to a region's store may write there together, in bytes a second; None: as fast as it goes."""
    return StoreLimit.objects.filter(region=region).values_list("bytes_per_second", flat=True).first()


def _limit_store(actor: Any, link: Link, limit: int | None) -> None:
    """Of all links to the store of this one. Raises Denied unless the right is had on all their rules."""
    before = store_limit(link.region)
    if limit == before:
        return
    names = Link.objects.live().filter(region=link.region).order_by("rule__name").values_list("rule__name", flat=True)
    right = (OPERATE, rule_arn(link.rule.name))
    try:
        rbac.require(actor, right, *((OPERATE, rule_arn(name)) for name in names.distinct()))
    except Denied as error:  # whose rules these are is told to nobody who may not see them
        text = f"all rules to the store of {link.region} share its limit: that needs {OPERATE} on each of them"
        raise Denied(text, action=OPERATE, arn=rule_arn(link.rule.name)) from error
    if limit is None:
        StoreLimit.objects.filter(region=link.region).delete()
        Link.objects.filter(region=link.region).update(share_bytes=None)
    else:
        StoreLimit.objects.update_or_create(region=link.region, defaults={"bytes_per_second": limit})
    told = {"before": {STORE_BYTES: before}, "after": {STORE_BYTES: limit}}
    _audit(actor, right, Verb.CHANGE, link.audit_name, **told)


def link_retry(*, actor: Any, name: str, number: int, ids: Collection[int] | None = None, code: str = "") -> int:
    """Try open objects of it at once, as `rule_retry`. Gives how many. Raises Denied and NotFound."""
    right = (OPERATE, rule_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        link = _held(name, number)
        tried = retry_open(link.pk, ids, code)
        _audit(actor, right, Verb.RETRY, link.audit_name, after=retry_recorded(tried, ids, code))
    return tried


def _audit(actor: Any, right: Right, verb: Verb, subject: str, **more: Any) -> None:
    rbac.audit(actor=actor, right=right, verb=verb, subject=subject, **more)
