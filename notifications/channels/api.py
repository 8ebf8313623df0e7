"""The replication API: channels, what was sent by them, and the message that a webhook gets."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, OpenApiWebhook, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.notifications.channels import ChannelKind
from core.notifications.hours import DAYS
from core.notifications.kinds import AlertKind, Severity
from core.notifications.mail import LONGEST_ADDRESS, LONGEST_HOST, MOST_RECIPIENTS, Security
from core.notifications.rules import AGAIN, LONGEST_PATTERN, MOST_PATTERNS
from core.notifications.signing import DELIVERY, SIGNATURE
from db import clock
from installations.api import body_of
from notifications.api import AlertAnswer
from notifications.channels.services import (
    CREATE,
    DELETE,
    LIST,
    TEST,
    UPDATE,
    channel_arn,
    channel_create,
    channel_delete,
    channel_test,
    channel_update,
    etag_of,
    find,
    wish_of,
)
from notifications.channels.status import channel_json, channel_readings, delivery_json
from notifications.models import Channel, Delivery, Event
from rbac import services as rbac
from web.etags import seen
from web.openapi import IF_MATCH, answers, etag
from web.paging import PAGE, a_page, newest_first, page_of
from web.schemas import many_texts, page_answer, text_or_null, time_or_null
from web.serializers import TrueOrFalse, rfc3339

LONGEST = 2000


class ChannelText(serializers.CharField):
    """A text in JSON, and no number that looks like one."""

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be text")
        return super().to_internal_value(data)


def _text(**options: bool) -> ChannelText:
    return ChannelText(max_length=LONGEST, trim_whitespace=False, **options)


def _patterns() -> serializers.ListField:
    return serializers.ListField(
        child=ChannelText(max_length=LONGEST_PATTERN), max_length=MOST_PATTERNS, required=False
    )


class MailServerSettings(serializers.Serializer):
    """Where a channel of the kind `mail` hands its mail in. `port` follows from `security` unless it is given."""

    host = ChannelText(max_length=LONGEST_HOST)
    port = serializers.IntegerField(min_value=1, max_value=65535, required=False)
    security = serializers.ChoiceField([one.value for one in Security], required=False)
    username = ChannelText(max_length=LONGEST_ADDRESS, required=False, allow_blank=True)
    sender = ChannelText(max_length=LONGEST_ADDRESS)
    recipients = serializers.ListField(
        child=ChannelText(max_length=LONGEST_ADDRESS), min_length=1, max_length=MOST_RECIPIENTS
    )


class HoursSettings(serializers.Serializer):
    """When a channel sends; outside of it messages wait. An end before the start is on the next day."""

    days = serializers.ListField(child=serializers.ChoiceField(list(DAYS)), min_length=1, max_length=len(DAYS))
    start = ChannelText(max_length=5, help_text="a time of day, like 08:00")
    end = ChannelText(max_length=5, help_text="a time of day, 24:00 at most")
    time_zone = ChannelText(max_length=64, help_text="like Europe/Berlin, or UTC")


class ChannelSettings(serializers.Serializer):
    """The body of PUT: all settings but the name; a secret that isn't given stays as it is. The kind never changes."""

    kind = serializers.ChoiceField([kind.value for kind in ChannelKind], required=False)
    enabled = TrueOrFalse(required=False)
    least_severity = serializers.ChoiceField([one.value for one in Severity], required=False)
    kinds = serializers.ListField(child=serializers.ChoiceField([kind.value for kind in AlertKind]), required=False)
    names = _patterns()
    regions = _patterns()
    labels = _patterns()
    tell_again_seconds = serializers.ChoiceField(list(AGAIN), required=False)
    hours = HoursSettings(required=False, allow_null=True)
    url = _text(required=False, write_only=True)
    signing_secret = _text(required=False, write_only=True)
    password = _text(required=False, write_only=True)
    mail = MailServerSettings(required=False)


class ChannelCreation(ChannelSettings):
    """The body of POST: the name, and the settings with their secrets."""

    name = _text()


class ChannelTry(serializers.Serializer):
    """The body of a test: nothing."""


class ChannelAnswer(serializers.Serializer):
    """A channel without its secrets. `target`: scheme and host of a webhook, the scheme of an Apprise URL, or who gets
    mail; `mail`: null for other kinds; `waiting`: how many messages."""

    name = serializers.CharField()
    kind = serializers.ChoiceField([kind.value for kind in ChannelKind])
    enabled = serializers.BooleanField()
    target = serializers.CharField()
    mail = MailServerSettings(allow_null=True)
    least_severity = serializers.ChoiceField([one.value for one in Severity])
    kinds = many_texts()
    names = many_texts()
    regions = many_texts()
    labels = many_texts()
    tell_again_seconds = serializers.IntegerField()
    hours = HoursSettings(allow_null=True)
    waiting = serializers.IntegerField()
    last_state = serializers.ChoiceField(Delivery.State.values, allow_null=True)
    last_tried_at = time_or_null()
    last_answer = text_or_null()
    changed_at = serializers.DateTimeField()


class ChannelTestAnswer(serializers.Serializer):
    """What the receiver said; `ok`: it took the message."""

    ok = serializers.BooleanField()
    answer = serializers.CharField()
    seconds = serializers.FloatField()
    as_of = serializers.DateTimeField()


class DeliveryTryAnswer(serializers.Serializer):
    """One try."""

    at = serializers.DateTimeField()
    seconds = serializers.FloatField()
    answer = serializers.CharField()


class DeliveryAnswer(serializers.Serializer):
    """A message, and how it went. `id`: the header LakeMirror-Delivery, the same in each try."""

    id = serializers.CharField()
    event = serializers.ChoiceField(Event.Verb.values)
    at = serializers.DateTimeField()
    alert = serializers.IntegerField()
    kind = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(Delivery.State.values)
    tries = serializers.IntegerField()
    next_try_at = time_or_null()
    ended_at = time_or_null()
    log = DeliveryTryAnswer(many=True)


class WebhookMessage(serializers.Serializer):
    """The body of a message. `alert` is as it was when it happened, and null in a test."""

    id = serializers.CharField(help_text="as the header LakeMirror-Delivery: the same in each try")
    event = serializers.ChoiceField([*Event.Verb.values, "test"])
    at = serializers.DateTimeField()
    organization = serializers.CharField(help_text="organization_id of the configuration")
    alert = AlertAnswer(allow_null=True)


MESSAGE = OpenApiWebhook(
    "notification",
    extend_schema(
        operation_id="receive_notification",
        summary="What a channel's receiver gets",
        tags=["notifications"],
        auth=[{}],
        description=(
            f"Posted with the headers `{DELIVERY}`, the id of the message, and `{SIGNATURE}`: `t=<Unix time>,v1=<hex "
            'HMAC-SHA256 of "<t>.<body>">` with the signing secret.'
        ),
        request=WebhookMessage,
        responses={200: OpenApiResponse(description="any 2xx: accepted; anything else is retried for a day")},
    ),
)
"""For the API's document."""


class Channels(APIView):
    """All channels: list them, add one."""

    tag = "notifications"

    @answers("List channels", 200, page_answer(ChannelAnswer), query=PAGE)
    def get(self, request: Request) -> Response:
        """A page of channels by name. Needs auth:ListChannels on `*`."""
        rbac.require(request.user, (LIST, "*"))
        amount, after = page_of(request)
        rows = list(Channel.objects.filter(name__gt=after).order_by("name")[: amount + 1])
        page, answer = a_page(rows, amount, lambda row: row.name)
        return Response(answer | {"results": [channel_json(reading) for reading in channel_readings(page)]})

    @answers("Create a channel", 201, ChannelAnswer, body=ChannelCreation, query=[etag(201)])
    def post(self, request: Request) -> Response:
        """201: it hears of what happens from now on. Needs auth:CreateChannel on its ARN."""
        given = body_of(ChannelCreation, request)
        rbac.require(request.user, (CREATE, channel_arn(given["name"])))
        wish, secrets = wish_of(given)
        return _answer(channel_create(actor=request.user, wish=wish, secrets=secrets), 201)


class ChannelDetail(APIView):
    """One channel."""

    tag = "notifications"

    @answers("Get a channel", 200, ChannelAnswer, query=[etag(200)])
    def get(self, request: Request, channel: str) -> Response:
        """The channel, without its secrets. Needs auth:ListChannels on `*`."""
        rbac.require(request.user, (LIST, "*"))
        return _answer(find(channel))

    @answers(
        "Replace a channel",
        200,
        ChannelAnswer,
        body=ChannelSettings,
        query=[IF_MATCH, etag(200)],
        fails=[412, 503],
    )
    def put(self, request: Request, channel: str) -> Response:
        """Replace its settings; a secret that isn't given stays. Needs auth:UpdateChannel on its ARN."""
        rbac.require(request.user, (UPDATE, channel_arn(channel)))
        given = {"kind": find(channel).kind, **body_of(ChannelSettings, request), "name": channel}
        wish, secrets = wish_of(given)
        if_match = seen(request.headers.get("If-Match", ""))
        return _answer(channel_update(actor=request.user, name=channel, wish=wish, secrets=secrets, seen=if_match))

    @answers("Delete a channel", 204, query=[IF_MATCH], fails=[412])
    def delete(self, request: Request, channel: str) -> Response:
        """Forget it; what waits is not sent any more. Needs auth:DeleteChannel on its ARN."""
        rbac.require(request.user, (DELETE, channel_arn(channel)))
        channel_delete(actor=request.user, name=channel, seen=seen(request.headers.get("If-Match", "")))
        return Response(status=204)


class ChannelTested(APIView):
    """Whether its receiver takes a message."""

    tag = "notifications"

    @answers("Test a channel", 200, ChannelTestAnswer, body=ChannelTry)
    def post(self, request: Request, channel: str) -> Response:
        """Sends a message with the event `test` now, and 200 with what was answered. Needs auth:TestChannel on its
        ARN."""
        rbac.require(request.user, (TEST, channel_arn(channel)))
        body_of(ChannelTry, request)
        outcome = channel_test(actor=request.user, name=channel)
        told = {"ok": outcome.taken, "answer": outcome.answer, "seconds": outcome.seconds}
        return Response(told | {"as_of": rfc3339(clock.now())})


class Deliveries(APIView):
    """What was sent by a channel."""

    tag = "notifications"

    @answers("List deliveries of a channel", 200, page_answer(DeliveryAnswer), query=PAGE)
    def get(self, request: Request, channel: str) -> Response:
        """A page of messages, the last one first, each with its last tries. Needs auth:ListChannels on `*`."""
        rbac.require(request.user, (LIST, "*"))
        rows = find(channel).deliveries.select_related("event")
        return Response(newest_first(request, rows, delivery_json))


def _answer(row: Channel, status: int = 200) -> Response:
    [reading] = channel_readings([row])
    return Response(channel_json(reading), status=status, headers={"ETag": etag_of(row)})
