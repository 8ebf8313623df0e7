"""The replication API: what a rule would cost."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.replicating.passes.costs import UNITS, Priced, Span
from replication.api.bodies import RuleCreation
from replication.api.rules import readable
from replication.api.serializers import RulePlaceAnswer, checked
from replication.preflight.cost import RuleCost, TargetCost, cost_of, cost_of_wish
from web.openapi import answers
from web.schemas import count_or_null, number_or_null, text_or_null
from web.serializers import rfc3339


class SpanAnswer(serializers.Serializer):
    """An estimate; `most` is null where nobody knows how much there is."""

    least = serializers.IntegerField()
    likely = serializers.IntegerField()
    most = count_or_null()


class PriceAnswer(serializers.Serializer):
    """The same in the currency of the prices."""

    least = serializers.FloatField()
    likely = serializers.FloatField()
    most = number_or_null()


class AmountAnswer(SpanAnswer):
    """Requests, or bytes, with what they cost; null without a price."""

    name = serializers.ChoiceField(list(UNITS))
    cost = PriceAnswer(allow_null=True)


class TargetCostAnswer(RulePlaceAnswer):
    """What it takes until everything is at one target; storage and the listings of comparisons for a month."""

    link = serializers.IntegerField()
    objects = SpanAnswer()
    bytes = SpanAnswer()
    amounts = AmountAnswer(many=True)
    once = PriceAnswer(allow_null=True)
    monthly = PriceAnswer(allow_null=True)
    seconds = SpanAnswer(allow_null=True)
    doubted_objects = serializers.IntegerField(help_text="of the sample, counted as equal: only a comparison can tell")


class RuleCostAnswer(serializers.Serializer):
    """What a rule would cost: estimates, unless `whole`: then all objects were looked at."""

    whole = serializers.BooleanField()
    sampled_objects = serializers.IntegerField()
    total_objects = count_or_null()
    currency = text_or_null()
    targets = TargetCostAnswer(many=True)
    as_of = serializers.DateTimeField()


def cost_json(cost: RuleCost) -> dict[str, Any]:
    """What a rule would cost."""
    return {
        "whole": cost.whole,
        "sampled_objects": cost.sampled,
        "total_objects": cost.total,
        "currency": cost.currency or None,
        "targets": [_target_json(target) for target in cost.targets],
        "as_of": rfc3339(cost.as_of),
    }


def _target_json(target: TargetCost) -> dict[str, Any]:
    made = target.estimate
    amounts = [
        {"name": name, **_span(span), "cost": _price(target.costs.get(name))} for name, span in made.amounts.items()
    ]
    return {
        "link": target.number,
        "region": target.region,
        "uri": target.uri,
        "objects": _span(made.objects),
        "bytes": _span(made.bytes),
        "amounts": amounts,
        "once": _price(target.once),
        "monthly": _price(target.monthly),
        "seconds": None if made.seconds is None else _span(made.seconds),
        "doubted_objects": target.doubted,
    }


def _span(span: Span) -> dict[str, Any]:
    return {"least": span.least, "likely": span.likely, "most": span.most}


def _price(price: Priced | None) -> dict[str, Any] | None:
    if price is None:
        return None
    most = None if price.most is None else round(price.most, 4)
    return {"least": round(price.least, 4), "likely": round(price.likely, 4), "most": most}


class RuleEstimateOfWish(APIView):
    """What a rule would cost that somebody thinks of."""

    tag = "rules"

    @answers("Estimate a new replication rule", 200, RuleCostAnswer, body=RuleCreation)
    def post(self, request: Request) -> Response:
        """The body of POST `/rules`; nothing is stored. Source and targets are listed for 8 s at most. Needs what
        creating needs."""
        body = RuleCreation(data=request.data)
        checked(body)
        return Response(cost_json(cost_of_wish(actor=request.user, wish=body.wish())))


class RuleEstimate(APIView):
    """What a rule would still cost."""

    tag = "rules"

    @answers("Estimate a replication rule", 200, RuleCostAnswer)
    def post(self, request: Request, rule: str) -> Response:
        """What it takes to bring what the targets lack now, from a sample of 8 s at most. Needs
        fs:ReadReplicationRule on it."""
        return Response(cost_json(cost_of(readable(request, rule))))
