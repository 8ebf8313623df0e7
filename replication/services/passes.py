"""What people do with passes: begin a resync or a dry run, cancel one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from django.db import transaction

from audit.verbs import Verb
from core.access.rule_rights import rule_arn
from core.errors import Conflict, Invalid, NotFound
from core.replicating.passes import PassKind, PassState, What, check_prefix
from core.replicating.wishes import USUAL_METADATA, RuleWish, TargetWish
from db import clock
from rbac import services as rbac
from replication.models import Link, Pass, Rule
from replication.services.links import find_link
from replication.services.rules import CREATE, OPERATE, READ, check_wish, find_rule, rights_to_create
from replication.transitions import ledger, passes

MOST_OF_WISHES = 8
"""So many dry runs of rules that are only thought of go on at a time."""
_WAIT = "Wait for its end, or cancel it"


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants of a pass: objects whose key begins so, last written before then; lacking ones, or all."""

    prefix: str = ""
    older_than: datetime | None = None
    what: str = What.MISSING.value


def pass_resync(*, actor: Any, name: str, number: int, asked: Asked) -> Pass:
    """Look through all of a link and have what lacks, or everything, copied; within the link's limits, and once it is
    not paused. Raises Denied, NotFound, Invalid, and Conflict while one goes on."""
    right = (OPERATE, rule_arn(name))
    rbac.require(actor, right)
    made = _new(PassKind.RESYNC, actor, asked)
    with transaction.atomic():
        rule = find_rule(name)
        link = ledger.hold(find_link(rule, number).pk)
        if link is None:
            raise NotFound(f"the rule '{name}' has been deleted")
        _check_fits(rule, asked)
        made.rule, made.link, made.region = rule, link, rule.region
        going = Pass.objects.filter(link=link.pk, kind=PassKind.RESYNC.value, ended_at=None).first()
        if going is not None:
            raise Conflict(f"a resync of link {number} goes on: pass {going.pk}", hint=_WAIT)
        passes.begin(made)
        _audit(actor, right, Verb.RESYNC, link.audit_name, after=_recorded(made))
    return made


def pass_dry_run(*, actor: Any, name: str, number: int | None, asked: Asked) -> Pass:
    """Tell what a resync of a link, or of all, would do; nothing is written anywhere. Raises as `pass_resync`."""
    right = (OPERATE, rule_arn(name))
    rbac.require(actor, right)
    made = _new(PassKind.DRY_RUN, actor, asked)
    with transaction.atomic():
        rule = Rule.objects.held(name)
        link = None if number is None else find_link(rule, number)
        _check_fits(rule, asked)
        made.rule, made.link, made.region = rule, link, rule.region
        going = Pass.objects.filter(rule=rule.pk, kind=PassKind.DRY_RUN.value, ended_at=None).first()
        if going is not None:
            raise Conflict(f"a dry run of '{name}' goes on: pass {going.pk}", hint=_WAIT)
        passes.begin(made)
        _audit(actor, right, Verb.DRY_RUN, (link or rule).audit_name, after=_recorded(made))
    return made


def pass_dry_run_of_wish(*, actor: Any, wish: RuleWish, asked: Asked) -> Pass:
    """The same of a rule before it is created. Raises what `check_wish` does."""
    right = (CREATE, rule_arn(wish.name))
    rbac.require(actor, right)
    checked = check_wish(actor=actor, wish=wish)
    made = _new(PassKind.DRY_RUN, actor, asked)
    made.wish, made.region = wish_json(checked), checked.region
    with transaction.atomic():
        if Pass.objects.filter(rule=None, ended_at=None).count() >= MOST_OF_WISHES:
            raise Conflict(
                "too many dry runs of rules that do not exist yet go on", hint="Try again when one has ended"
            )
        passes.begin(made)
        _audit(actor, right, Verb.DRY_RUN, f"replication/{checked.name}", after=_recorded(made))
    return made


def pass_cancel(*, actor: Any, number: int) -> None:
    """End it. What it found lacking stays open and is copied; nothing is sent again any more that is equal. Raises
    Denied, NotFound, and Conflict for one that has ended."""
    made = find_pass(actor, number)
    right = (OPERATE, rule_arn(made.rule.name)) if made.rule else (CREATE, rule_arn(made.wish["name"]))
    rbac.require(actor, right)
    with transaction.atomic():
        if made.link_id is not None:
            ledger.hold(made.link_id)
        if not Pass.objects.filter(pk=made.pk, ended_at=None).exists():
            raise Conflict(f"pass {number} has ended")
        passes.end(made, PassState.CANCELED, f"canceled by {actor}", clock.now())
        _audit(actor, right, Verb.CANCEL, made.audit_name)


def find_pass(actor: Any, number: int) -> Pass:
    """A pass, for somebody who may read its rule, or might create the one that is thought of. Raises NotSignedIn, and
    NotFound also where it is nothing to them: numbers are no secret."""
    rbac.require(actor)
    made = Pass.objects.select_related("rule", "link__rule").filter(pk=number).first() if number < 10**18 else None
    rights = [] if made is None else [(READ, rule_arn(made.rule.name))] if made.rule else _rights_of_wish(made)
    if made is None or (made.rule and made.rule.deleting) or not all(rbac.allowed(actor, *one) for one in rights):
        raise NotFound(f"there is no pass {number}")
    return made


def _rights_of_wish(made: Pass) -> list[tuple[str, str]]:
    return rights_to_create(wish_of(made))


def wish_json(wish: RuleWish) -> dict[str, Any]:
    """A rule that somebody thinks of, as it is stored with its pass."""
    told: dict[str, Any] = json.loads(json.dumps(asdict(wish)))
    return told | {"metadata": wish.metadata or USUAL_METADATA}


def wish_of(made: Pass) -> RuleWish:
    """The same, read back, as far as this version knows it."""
    known, of_target = ({one.name for one in fields(kind)} for kind in (RuleWish, TargetWish))
    told = {name: value for name, value in made.wish.items() if name in known}
    targets = [{name: value for name, value in one.items() if name in of_target} for one in told["targets"]]
    return RuleWish(**told | {"targets": [TargetWish(**one) for one in targets]})


def _new(kind: PassKind, actor: Any, asked: Asked) -> Pass:
    return Pass(
        kind=kind.value,
        prefix=check_prefix(asked.prefix),
        older_than=asked.older_than,
        what=What(asked.what).value,
        who=str(actor)[:200],
        began_at=clock.now(),
    )


def _check_fits(rule: Rule, asked: Asked) -> None:
    """Raises Invalid for what makes no sense where chains of versions are compared, or where the newer object stays."""
    if rule.both_ways and asked.what == What.ALL:
        text = "a rule with conflict=newest never sends again what is equal"
        raise Invalid(text, field="what", hint="Leave it out: what lacks, or is older at the target, is copied")
    for field, given in (("older_than", asked.older_than is not None), ("what", asked.what == What.ALL)):
        if given and rule.all_versions:
            text = f"a rule that copies all versions has no pass by {field}"
            raise Invalid(text, field=field, hint="Leave it out: what lacks of each key's versions is copied")


def _recorded(made: Pass) -> dict[str, Any]:
    older = made.older_than.isoformat() if made.older_than else None
    return {"pass": made.pk, "prefix": made.prefix, "older_than": older, "what": made.what}


def links_of(made: Pass) -> list[tuple[int, str, str]]:
    """Number, region and place of each target of a pass."""
    if made.rule is None:
        return [(number, one["region"], one["uri"]) for number, one in enumerate(made.wish["targets"], 1)]
    links = [made.link] if made.link else list(Link.objects.filter(rule=made.rule_id).order_by("number"))
    of = [link for link in links if not made.actions or str(link.number) in made.actions]
    return [(link.number, link.region, link.uri) for link in of]


def _audit(actor: Any, right: tuple[str, str], verb: Verb, subject: str, **more: Any) -> None:
    rbac.audit(actor=actor, right=right, verb=verb, subject=subject, **more)
