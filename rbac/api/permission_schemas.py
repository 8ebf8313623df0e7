"""The shapes of the API's answers about what people may do, and what fills them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from core.access.policies import Deciding, Effect, auth_arn
from core.access.policy_analysis import LONGEST_ARN, PolicyDecision
from rbac import services
from rbac.models import User
from rbac.services.effective_permissions import Holding, Simulation
from rbac.services.policy_impact import AreaChange, Impact
from rbac.services.policy_warnings import warnings_of
from web.schemas import many_texts
from web.serializers import Body, rfc3339

MOST_ALSO = 100


class HoldingAnswer(serializers.Serializer):
    """A statement that applies to a user; `number` counts from 1. `groups` give it to them, and `own` their name."""

    policy = serializers.CharField()
    number = serializers.IntegerField()
    effect = serializers.ChoiceField([effect.value for effect in Effect])
    action = many_texts()
    resource = many_texts()
    own = serializers.BooleanField()
    groups = many_texts()


class PermissionsAnswer(serializers.Serializer):
    """All statements that apply to a user. Of one who is not active none counts."""

    user = serializers.CharField()
    active = serializers.BooleanField()
    statements = HoldingAnswer(many=True)
    as_of = serializers.DateTimeField()


class Question(Body):
    """What is asked. Without a user: about who asks."""

    user = serializers.CharField(required=False, max_length=128)
    action = serializers.CharField(max_length=100)
    arn = serializers.CharField(max_length=LONGEST_ARN)


class SimulationAnswer(serializers.Serializer):
    """Yes or no. `deciding` is null where no statement speaks of it; `others` speak of it too."""

    user = serializers.CharField()
    action = serializers.CharField()
    arn = serializers.CharField()
    allowed = serializers.BooleanField()
    reason = serializers.CharField()
    deciding = HoldingAnswer(allow_null=True)
    others = HoldingAnswer(many=True)
    as_of = serializers.DateTimeField()


class Draft(Body):
    """A policy's statements as they would be, null if it were deleted; `users` would get it besides its holders."""

    statement = serializers.JSONField(allow_null=True)
    users = serializers.ListField(child=serializers.CharField(max_length=128), required=False, max_length=MOST_ALSO)


class DecidingAnswer(serializers.Serializer):
    """A statement that decides."""

    policy = serializers.CharField()
    number = serializers.IntegerField()
    effect = serializers.ChoiceField([effect.value for effect in Effect])


class OutcomeAnswer(serializers.Serializer):
    """Whether a step is allowed, and the need that settles it: the first that is refused, if one is."""

    allowed = serializers.BooleanField()
    action = serializers.CharField()
    arn = serializers.CharField()
    deciding = DecidingAnswer(allow_null=True)


class ChangeAnswer(serializers.Serializer):
    """A step that not everybody may take as before. `before` and `after` are those of the first who is concerned.

    A `*` in a resource stands for any other thing.
    """

    area = serializers.CharField()
    step = serializers.CharField()
    title = serializers.CharField()
    resources = many_texts()
    before = OutcomeAnswer()
    after = OutcomeAnswer()
    users_before = many_texts()
    users_after = many_texts()
    gained = serializers.IntegerField(help_text="how many users would gain it")
    lost = serializers.IntegerField(help_text="how many users would lose it")


class ImpactAnswer(serializers.Serializer):
    """What a draft would change. `alone` is what it changes for a user who has no other policy; `warnings`: of
    unknown actions, of resources that an action is never asked for on, and of rights that open no page by themselves.

    Names of users whom the caller may not read (auth:ReadUser) are left out, not their number.
    """

    policy = serializers.CharField()
    people = serializers.IntegerField(help_text="how many users have it, or would get it")
    left_out = serializers.IntegerField(help_text="how many of them were not evaluated, because there are too many")
    breaks = serializers.IntegerField(help_text="how many actions somebody would lose, on some resource")
    allows = serializers.IntegerField(help_text="how many actions somebody would gain, on some resource")
    changes = ChangeAnswer(many=True)
    alone = ChangeAnswer(many=True)
    warnings = many_texts()
    more = serializers.BooleanField(help_text="there are more changes than listed")
    as_of = serializers.DateTimeField()


# --- as JSON ----------------------------------------------------------------------------------------------------------


def as_of() -> dict[str, Any]:
    """When it was so."""
    return {"as_of": rfc3339(timezone.now())}


def holding_json(holding: Holding) -> dict[str, Any]:
    """A statement that applies to somebody."""
    return {
        "policy": holding.policy,
        "number": holding.number,
        "effect": holding.statement.effect.value,
        "action": list(holding.statement.actions),
        "resource": list(holding.statement.resources),
        "own": holding.own,
        "groups": list(holding.groups),
    }


def simulation_json(simulation: Simulation) -> dict[str, Any]:
    """The answer to a question."""
    return {
        "user": simulation.user.username,
        "action": simulation.action,
        "arn": simulation.arn,
        "allowed": simulation.verdict.allowed,
        "reason": simulation.reason,
        "deciding": holding_json(simulation.deciding) if simulation.deciding else None,
        "others": list(map(holding_json, simulation.others)),
    }


def impact_json(impact: Impact, reader: User) -> dict[str, Any]:
    """What a draft would change, with the names that its reader may see."""
    seen = names_seen(impact, reader)
    return {
        "policy": impact.policy,
        "people": impact.people + impact.left_out,
        "left_out": impact.left_out,
        "breaks": impact.breaks,
        "allows": impact.allows,
        "changes": [_change_json(area_change, seen) for area_change in impact.changes],
        "alone": [_change_json(area_change, set()) for area_change in impact.alone],
        "warnings": warnings_of(impact.draft) if impact.draft else [],
        "more": impact.more,
    }


def names_seen(impact: Impact, reader: User) -> set[str]:
    """Names in it that somebody may read."""
    names = {
        name
        for area_change in impact.changes
        for name in (*area_change.change.users_before, *area_change.change.users_after)
    }
    return {name for name in names if services.allowed(reader, "auth:ReadUser", auth_arn("user", name))}


def _change_json(area_change: AreaChange, seen: set[str]) -> dict[str, Any]:
    change = area_change.change
    return {
        "area": area_change.area,
        "step": change.step.key,
        "title": change.step.title,
        "resources": list(change.arns),
        "before": _outcome_json(change.before),
        "after": _outcome_json(change.after),
        "users_before": [name for name in change.users_before if name in seen],
        "users_after": [name for name in change.users_after if name in seen],
        "gained": len(change.gained),
        "lost": len(change.lost),
    }


def _outcome_json(decision: PolicyDecision) -> dict[str, Any]:
    deciding = _deciding_json(decision.deciding) if decision.deciding else None
    return {"allowed": decision.allowed, "action": decision.action, "arn": decision.arn, "deciding": deciding}


def _deciding_json(deciding: Deciding) -> dict[str, Any]:
    return {"policy": deciding.policy, "number": deciding.number, "effect": deciding.statement.effect.value}
