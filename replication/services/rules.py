"""The business verbs of replication rules: typed, keyword-only, knowing nothing of HTTP or the queue."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Q

from audit.verbs import Verb
from core import labels
from core.access.policies import Right, namespace_arn
from core.access.rule_rights import rule_arn
from core.errors import Conflict, Invalid, NotFound
from core.pauses import ENDED, columns_of, recorded
from core.replicating import wishes
from core.replicating.wishes import RuleWish, TargetWish
from db import clock
from installations import services as installations
from mirrors.services.placement import hold_places
from rbac import services as rbac
from replication.engine.deletes import ends
from replication.models import Link, Rule
from replication.services import places, versioning
from replication.transitions import deletions, duties, ledger, manifests, retrying, shards, tombstones
from web.etags import ANYTHING, Seen
from web.parsing import require_text

TRAVELLING = ("tags", "metadata", "storage_class", "sweep_heads_per_second")
DELETING = ("markers", "purges", "delete_percent", "delete_most")
BOUNDS = frozenset({"delete_percent", "delete_most"})
FOLLOWED = frozenset({"markers", "purges"})
"""Which deletions are followed."""
TURNS = ("priority", "order")
SETTINGS = ("existing", "new", "scan_every", "labels", *TRAVELLING, *DELETING, *TURNS)
"""What may be changed of a rule, by its columns, which are the API's names."""
CREATE, READ, UPDATE, DELETE, OPERATE = (
    f"fs:{verb}ReplicationRule" for verb in ("Create", "Read", "Update", "Delete", "Operate")
)
MOST_ITEMS = 1000


def find_rule(name: str) -> Rule:
    """The rule of this name. Raises NotFound."""
    rule = Rule.objects.live().filter(name=name).first()
    if rule is None:
        raise NotFound(f"there is no replication rule '{name[:80]}'")
    return rule


def etag_of(rule: Rule) -> str:
    """Names its settings of now, not how it stands. One that is made anew under an old name has another one."""
    text = json.dumps([rule.pk, {name: getattr(rule, name) for name in SETTINGS}], sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


# --- configuration ----------------------------------------------------------------------------------------------------


def rights_to_create(wish: RuleWish) -> list[Right]:
    """What somebody needs for it: of the rule, and of each place, by the address that will be stored."""
    uris = dict.fromkeys(wishes.address(uri) for uri in [wish.uri, *(target.uri for target in wish.targets)])
    attach: list[Right] = [("fs:AttachStorageNamespace", namespace_arn(uri)) for uri in uris]
    return [(CREATE, rule_arn(wish.name)), *attach]


def rule_create(*, actor: Any, wish: RuleWish, failed_checks: Sequence[str] = ()) -> Rule:
    """Copy what lies at a place to others, from now on. `failed_checks`: ids of checks that failed, which somebody
    ignores; they stand in the audit record.

    Raises what `check_wish` does; then nothing is stored.
    """
    right = (CREATE, rule_arn(wish.name))
    rbac.require(actor, right)
    checked = check_wish(actor=actor, wish=wish)
    source, targets = places.source_of(checked), places.targets_of(checked)
    places.check_apart_from_repositories(actor, targets)
    places.check_reached(source, checked.region, targets)
    if checked.all_versions:
        versioning.check_versioned(source, checked.region, targets)
    if not checked.overwrite:
        places.check_empty(targets)
    exact = exactness(checked, targets)
    with transaction.atomic():
        hold_places()
        installations.hold(checked.region, *(target.region for target in checked.targets))
        check_unused(checked.name)
        places.check_apart(actor, source, targets, both_ways=checked.both_ways)
        rule = _store(checked, exact)
        after = _recorded(rule) | ({"failed_checks": list(failed_checks)} if failed_checks else {})
        after |= {"overwrite": True} if checked.overwrite else {}
        _audit(actor, right, Verb.CREATE, rule.audit_name, after=after)
    return rule


def check_wish(*, actor: Any, wish: RuleWish) -> RuleWish:
    """The wish with its addresses as they are stored, if it may be stored by all that is known here: no store is asked.

    Raises Denied, Invalid (naming the field) and Conflict (the name is taken, or a place is another rule's).
    """
    rbac.require(actor, *rights_to_create(wish))
    wishes.check_name(wish.name)
    wishes.check_kinds(wish.existing, wish.new)
    wishes.check_versions(wish.versions)
    wishes.check_conflict(wish.conflict, wish.sweep_heads_per_second)
    wishes.check_scan_every(wish.scan_every)
    wishes.check_travelling({name: getattr(wish, name) for name in TRAVELLING})
    wishes.check_together(wish.terms, wish.sweep_heads_per_second, purges=wish.purges)
    wishes.check_turns({name: getattr(wish, name) for name in TURNS})
    wishes.check_deletes(wish.delete_percent, wish.delete_most)
    wishes.check_followed(wish.versions, wish.markers)
    wishes.check_purges(wish.versions, wish.purges, wish.conflict)
    labels.check(wish.labels)
    source, targets = wishes.checked_places(wish.uri, [target.uri for target in wish.targets])
    for number, target in enumerate(wish.targets):
        wishes.check_limits(target.limits, f"targets.{number}.")
    checked = _with_places(wish, source, targets)
    check_unused(checked.name)
    read_from, written_to = places.source_of(checked), places.targets_of(checked)
    places.check_apart_from_itself(read_from, written_to)
    places.check_apart(actor, read_from, written_to, both_ways=checked.both_ways)
    return checked


def _with_places(wish: RuleWish, source: str, targets: Sequence[str]) -> RuleWish:
    paired = zip(wish.targets, targets, strict=True)
    made = [TargetWish(target.region, uri, **target.limits) for target, uri in paired]  # type: ignore[arg-type]
    return replace(wish, uri=source, targets=made)


def check_unused(name: str) -> None:
    """Raises Conflict if a rule has the name, or keeps it until it is deleted."""
    rule = Rule.objects.filter(name=name).first()
    if rule is None:
        return
    if rule.deleting:
        raise Conflict(f"the rule '{name}' is being deleted", field="name", hint="Try again in a minute")
    raise Conflict(f"a rule named '{name}' exists", field="name", hint="Choose another name")


def exactness(wish: RuleWish, targets: Sequence[places.Target]) -> list[bool | None]:
    """Of each target whether it takes versions under their ids; None where only the latest are copied. Raises Conflict
    for one that has versions already, unless the wish allows that, and for one that does not take them where versions
    of both sides are to be one history."""
    if not wish.all_versions:
        return [None] * len(targets)
    if not wish.overwrite:
        versioning.check_no_versions(targets)
    exact = [versioning.exactness_of(target) for target in targets]
    if wish.both_ways:
        versioning.check_all_exact(targets, exact)
    return [tried.exact for tried in exact]


def _store(wish: RuleWish, exact: Sequence[bool | None]) -> Rule:
    now = clock.now()
    rule = Rule.objects.create(
        name=wish.name,
        region=wish.region,
        uri=wish.uri,
        existing=wish.existing,
        new=wish.new,
        versions=wish.versions,
        conflict=wish.conflict,
        scan_every=wish.scan_every,
        labels=dict(wish.labels),
        **{name: getattr(wish, name) for name in TRAVELLING} | {"metadata": wish.terms.metadata.value},
        **{name: getattr(wish, name) for name in (*DELETING, *TURNS)},
        created_at=now,
        changed_at=now,
    )
    for number, target in enumerate(wish.targets, 1):
        place = {"region": target.region, "uri": target.uri, "identity": uuid.uuid4().hex}
        place["first_store"] = places.store_of(target)
        tried = {"exact": exact[number - 1], "exact_at": None if exact[number - 1] is None else now}
        Link.objects.create(rule=rule, number=number, **place, **target.limits, **tried)
    shards.begin(rule, now)
    _forget_older_deletions(rule)
    duties.ensure(rule)
    duties.wake_scan(rule.pk)
    return rule


def rule_update(*, actor: Any, name: str, changes: Mapping[str, Any], seen: Seen = ANYTHING) -> Rule:
    """Change settings of a rule, named by their columns; gives it as it is then. A change of what is copied has all of
    it compared anew. Raises Denied, NotFound, Stale (not as it was `seen`) and Invalid."""
    right = (UPDATE, rule_arn(name))
    rbac.require(actor, right)
    if unknown := sorted(changes.keys() - set(SETTINGS)):
        raise Invalid(f"a rule has no setting '{unknown[0]}' that can be changed", field=unknown[0])
    labels.check(changes.get("labels", {}))
    if "scan_every" in changes:
        wishes.check_scan_every(changes["scan_every"])
    wishes.check_travelling(changes)
    wishes.check_turns(changes)
    with transaction.atomic():
        wider = changes.get("existing") or changes.get("new") or "tags" in changes
        if wider or changes.keys() & set(DELETING):
            ledger.hold_all(find_rule(name).pk)
        rule = Rule.objects.held(name)
        seen.require(etag_of(rule), rule.name)
        before = {key: getattr(rule, key) for key, value in changes.items() if getattr(rule, key) != value}
        if not before:
            return rule
        after = {key: changes[key] for key in before}
        for key, value in (after | {"changed_at": clock.now()}).items():
            setattr(rule, key, value)
        wishes.check_kinds(rule.existing, rule.new)
        wishes.check_together(rule.terms, rule.sweep_heads_per_second, purges=rule.purges)
        wishes.check_deletes(rule.delete_percent, rule.delete_most)
        wishes.check_followed(rule.versions, rule.markers)
        wishes.check_purges(rule.versions, rule.purges, rule.conflict)
        wishes.check_conflict(rule.conflict, rule.sweep_heads_per_second)
        rule.save(update_fields=[*after, "changed_at"])
        if "metadata" in after:  # all of it is swept anew
            Rule.objects.filter(pk=rule.pk).update(swept_to=None, swept_at=None)
        _judge_deletions_anew(rule, before)
        if after.keys() & {"existing", "new", "tags", *FOLLOWED}:
            _compare_now(rule)
            if wider:
                ledger.overflow(rule.pk)
        duties.wake_scan(rule.pk)
        _audit(actor, right, Verb.CHANGE, rule.audit_name, before=before, after=after)
    return rule


def _judge_deletions_anew(rule: Rule, before: Mapping[str, Any]) -> None:
    """Bounds that are lowered hold for what was let through by itself, and is not deleted yet. The links are held."""
    if before.keys() & FOLLOWED:
        _drop_deletions(rule)
    elif any(getattr(rule, name) < before[name] for name in before.keys() & BOUNDS):
        for link in rule.links.order_by("pk"):
            deletions.hold_back_unasked(link, clock.now())
        _compare_now(rule)


def _drop_deletions(rule: Rule) -> None:
    """Whether deletions are followed has changed: none that was noted before is done, and what was a link's own then,
    and may have gone meanwhile, stays. The links are held."""
    for link in rule.links.order_by("pk"):
        deletions.hold_back(link, clock.now())
        deletions.drop(link, Q(), disowning=False)
    manifests.forget(rule.pk)
    _forget_older_deletions(rule)


def _forget_older_deletions(rule: Rule) -> None:
    """What was deleted at its ends while no rule followed that stays elsewhere, and may come back."""
    for place in ends.only_of(rule):
        tombstones.forget(place)


def rule_delete(*, actor: Any, name: str, reason: str = "", seen: Seen = ANYTHING) -> None:
    """Copy no more. No object is deleted anywhere; the rows go in the background, when nothing of it can write any
    more. Raises Denied, NotFound and Stale."""
    right = (DELETE, rule_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        rule = Rule.objects.held(name)
        seen.require(etag_of(rule), rule.name)
        Rule.objects.filter(pk=rule.pk).update(deleting=True)
        _wake_all(rule)
        _audit(actor, right, Verb.DELETE, rule.audit_name, before=_recorded(rule), reason=reason)


# --- running ----------------------------------------------------------------------------------------------------------


def rule_pause(*, actor: Any, name: str, paused: bool, stated: Mapping[str, Any] | None = None) -> Rule:
    """Begin nothing more, or go on; what changes meanwhile is noted. `stated` are the columns of core.pauses that
    somebody says of a pause: its reason, its end. Raises Denied, NotFound and Invalid."""
    right = (OPERATE, rule_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        rule = Rule.objects.held(name)
        change = pause_of(rule, actor, paused=paused, stated=stated or {})
        Rule.objects.filter(pk=rule.pk).update(**change.columns)
        _wake_all(rule)
        _audit(actor, right, change.verb, rule.audit_name, **change.recorded)
    rule.refresh_from_db()
    return rule


def rule_scan(*, actor: Any, name: str) -> None:
    """Compare all of a rule's places now. Raises Denied, NotFound, and Conflict for one that is paused."""
    right = (OPERATE, rule_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        rule = Rule.objects.held(name)
        if rule.paused:
            raise Conflict(f"the rule '{name}' is paused", hint="Resume it first")
        _compare_now(rule)
        _audit(actor, right, Verb.SYNC, rule.audit_name, after={"scan": "now"})


def rule_retry(*, actor: Any, name: str, ids: Collection[int] | None = None, code: str = "") -> int:
    """Try open objects of all links at once: these, those with a code, or all. Gives how many. Raises Denied and
    NotFound."""
    right = (OPERATE, rule_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        rule = find_rule(name)
        numbers = [retry_open(pk, ids, code) for pk in rule.links.kept().order_by("pk").values_list("pk", flat=True)]
        _audit(actor, right, Verb.RETRY, rule.audit_name, after=retry_recorded(sum(numbers), ids, code))
    return sum(numbers)


def retry_open(link_id: int, ids: Collection[int] | None, code: str) -> int:
    """Have open objects of a link tried at once: these, those with a code, or all. Gives how many. Inside of a
    transaction. Raises Invalid for what can be no code."""
    require_text({"code": code})
    link = ledger.hold(link_id)
    if link is None:
        return 0
    duties.wake_links([link.pk])
    if ids is None:
        return retrying.retry(link, code, clock.now())
    of_code = Q(code=code) if code else Q()
    return ledger.retry(link, of_code & Q(pk__in=ids), clock.now())


def retry_recorded(number: int, ids: Collection[int] | None, code: str) -> dict[str, Any]:
    """What stands in the audit record of a retry."""
    which = "some" if ids is not None else code or "all"
    return {"objects": number, "which": which}


class PauseChange:
    """A pause that begins, goes on otherwise, or ends: its columns, and what is written down of it."""

    def __init__(self, now: Any, columns: Mapping[str, Any], verb: Verb) -> None:
        self.columns, self.verb = columns, verb
        told = [name for name, value in columns.items() if name == "paused" or getattr(now, name) != value]
        self.recorded: dict[str, Any] = {
            "before": recorded({name: getattr(now, name) for name in told}),
            "after": recorded({name: columns[name] for name in told}),
            "reason": columns.get("pause_reason", ""),
        }


def pause_of(row: Rule | Link, actor: Any, *, paused: bool, stated: Mapping[str, Any]) -> PauseChange:
    """What a pause changes in a rule or a link. Raises Invalid."""
    columns = columns_of(row.pause, stated, by=str(actor), now=clock.now()) if paused else dict(ENDED)
    verb = Verb.RESUME if not paused else Verb.CHANGE if row.paused and stated else Verb.PAUSE
    return PauseChange(row, columns, verb)


def _compare_now(rule: Rule) -> None:
    """A look that goes on comes to its end first, and another one follows."""
    Rule.objects.filter(pk=rule.pk).update(scan_wanted=True)
    duties.wake_scan(rule.pk)


def _wake_all(rule: Rule) -> None:
    duties.wake_scan(rule.pk)
    duties.wake_links(rule.links.values_list("pk", flat=True))


def _recorded(rule: Rule) -> dict[str, Any]:
    """A rule for the audit trail."""
    links = rule.links.kept().order_by("number")
    source = {"region": rule.region, "uri": rule.uri}
    return {
        "rule": rule.name,
        "source": source,
        "targets": [{"region": link.region, "uri": link.uri} for link in links],
        "versions": rule.versions,
        **{name: getattr(rule, name) for name in SETTINGS},
    }


def _audit(actor: Any, right: Right, verb: Verb, subject: str, **more: Any) -> None:
    rbac.audit(actor=actor, right=right, verb=verb, subject=subject, **more)
