"""Replication rules as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from core.replicating.explain import STATES
from core.replicating.states import Health, OpenStatus, Order, Prevails, Versions
from core.travelling.describing import Metadata
from replication.status.rules import LinkReading, ReasonCount, RuleReading
from web.labels import Labels
from web.pauses import PauseAnswer, pause_json
from web.schemas import CheckAnswer, number_or_null, text_or_null, time_or_null
from web.serializers import Body, rfc3339

# --- answers ----------------------------------------------------------------------------------------------------------


class RulePlaceAnswer(serializers.Serializer):
    """A place in the store of a region."""

    region = serializers.CharField()
    uri = serializers.CharField()


class ReasonCountAnswer(serializers.Serializer):
    """So many objects have failed, or were skipped, for a reason."""

    code = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField([status.value for status in OpenStatus])
    words = serializers.CharField()
    objects = serializers.IntegerField()
    bytes = serializers.IntegerField()


class StandingAnswer(PauseAnswer):
    """What is said of a rule and of a link alike."""

    state = serializers.ChoiceField([state.value for state in STATES])
    word = serializers.CharField(help_text="the state as the pages say it")
    reason = serializers.CharField(help_text="what is happening and what to do, in a sentence")
    paused = serializers.BooleanField()
    pending_objects = serializers.IntegerField(help_text="to be copied")
    pending_bytes = serializers.IntegerField()
    failed_objects = serializers.IntegerField(help_text="could not be copied; tried once a day")
    skipped_objects = serializers.IntegerField(help_text="can't be copied as they are")
    uncounted = serializers.BooleanField(help_text="more is to be copied than is counted here")
    oldest_at = time_or_null()


class RuleLinkAnswer(StandingAnswer):
    """A rule's link: one of its targets, and how that stands."""

    number = serializers.IntegerField()
    region = serializers.CharField()
    uri = serializers.CharField()
    workers = serializers.IntegerField()
    bytes_per_second = serializers.IntegerField(allow_null=True)
    objects_per_second = serializers.IntegerField(allow_null=True)
    store_bytes_per_second = serializers.IntegerField(
        allow_null=True, help_text="what all links to the same store may do together; null: no limit"
    )
    share_bytes_per_second = serializers.IntegerField(
        allow_null=True, help_text="what it has of that, as it last copied"
    )
    exact = serializers.BooleanField(
        allow_null=True,
        help_text="whether versions keep their ids and times there; null: only the latest objects are copied",
    )
    exact_at = time_or_null()
    health = serializers.ChoiceField([health.value for health in Health])
    health_since = time_or_null()
    health_code = text_or_null()
    health_message = text_or_null()
    next_probe_at = time_or_null()
    stale_since = time_or_null()
    stale_message = text_or_null()
    frozen_since = time_or_null()
    frozen_code = text_or_null()
    frozen_message = text_or_null()
    deletes_waiting = serializers.IntegerField(help_text="deletions that are noted, or due")
    deletes_to_approve = serializers.IntegerField(help_text="those of them that wait for somebody")
    deleted_objects = serializers.IntegerField(help_text="at the target, since the link was created")
    foreign_objects = serializers.IntegerField(allow_null=True, help_text="there alone, left; null: not known")
    foreign_keys = serializers.ListField(child=serializers.CharField(), help_text="the first 20 of them")
    overwritten_objects = serializers.IntegerField(help_text="that somebody wrote there, by newer ones")
    failed_by_code = ReasonCountAnswer(many=True)
    sent_objects = serializers.IntegerField(help_text="copied since the link was created")
    sent_bytes = serializers.IntegerField()
    sent_at = time_or_null()
    retries = serializers.IntegerField(help_text="attempts that failed since the link was created")
    compared_at = serializers.DateTimeField(
        allow_null=True, help_text="when it had been compared with all of the source last; null: never yet"
    )
    waits_until = serializers.DateTimeField(
        allow_null=True, help_text="nothing is begun before: a worker was lost whose last writes may still arrive"
    )
    objects_per_second_now = number_or_null()
    bytes_per_second_now = number_or_null()


class LinkRemovedAnswer(RulePlaceAnswer):
    """A target that was removed, and whose place is not free yet."""

    number = serializers.IntegerField()


class RuleAnswer(StandingAnswer):
    """A rule: its settings, and how it and its links stand."""

    name = serializers.CharField()
    source = RulePlaceAnswer()
    existing = serializers.BooleanField()
    new = serializers.BooleanField()
    versions = serializers.ChoiceField([one.value for one in Versions])
    conflict = serializers.ChoiceField([one.value for one in Prevails])
    scan_every = serializers.IntegerField()
    labels = Labels()
    tags = serializers.DictField(child=serializers.CharField())
    metadata = serializers.ChoiceField([kind.value for kind in Metadata])
    storage_class = serializers.CharField(allow_blank=True)
    sweep_heads_per_second = serializers.IntegerField()
    swept_at = serializers.DateTimeField(
        allow_null=True, help_text="when metadata of all objects had been compared last; null: never yet"
    )
    priority = serializers.IntegerField()
    order = serializers.ChoiceField([one.value for one in Order])
    markers = serializers.BooleanField()
    purges = serializers.BooleanField()
    delete_percent = serializers.IntegerField()
    delete_most = serializers.IntegerField()
    scanned_at = serializers.DateTimeField(
        allow_null=True, help_text="when all of it had been compared last; null: never yet"
    )
    scanned_objects = serializers.IntegerField(help_text="at the source, by that comparison")
    scanned_bytes = serializers.IntegerField()
    scanning_since = serializers.DateTimeField(allow_null=True, help_text="of the comparison that goes on")
    scanning_objects = serializers.IntegerField(help_text="at the source, compared so far by it")
    scan_error = text_or_null()
    links = RuleLinkAnswer(many=True)
    removing = LinkRemovedAnswer(many=True, help_text="targets that were removed: not free until they are not here")
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()
    as_of = serializers.DateTimeField()


class ObjectsRetriedAnswer(serializers.Serializer):
    """How many objects are tried now."""

    number = serializers.IntegerField()


class RuleCheckedAnswer(serializers.Serializer):
    """Every check; `ok`: nothing failed, and what decides is known."""

    ok = serializers.BooleanField()
    checks = CheckAnswer(many=True)
    as_of = serializers.DateTimeField()


def rule_json(reading: RuleReading) -> dict[str, Any]:
    """A rule with its links."""
    rule = reading.rule
    return {
        "name": rule.name,
        "source": {"region": rule.region, "uri": rule.uri},
        "existing": rule.existing,
        "new": rule.new,
        "versions": rule.versions,
        "conflict": rule.conflict,
        "scan_every": rule.scan_every,
        "labels": rule.labels,
        "tags": rule.tags,
        "metadata": rule.metadata,
        "storage_class": rule.storage_class,
        "sweep_heads_per_second": rule.sweep_heads_per_second,
        "swept_at": rfc3339(rule.swept_at),
        "priority": rule.priority,
        "order": rule.order,
        "markers": rule.markers,
        "purges": rule.purges,
        "delete_percent": rule.delete_percent,
        "delete_most": rule.delete_most,
        **_standing_json(rule, reading),
        "scanned_at": rfc3339(rule.full_ended_at),
        "scanned_objects": rule.full_objects,
        "scanned_bytes": rule.full_bytes,
        "scanning_since": rfc3339(rule.cycle_began_at),
        "scanning_objects": rule.cycle_objects,
        "scan_error": reading.scan.error or None,
        "links": [link_json(link) for link in reading.links],
        "removing": [{"number": link.number, "region": link.region, "uri": link.uri} for link in reading.removing],
        "created_at": rfc3339(rule.created_at),
        "changed_at": rfc3339(rule.changed_at),
        "as_of": rfc3339(reading.as_of),
    }


def _standing_json(row: Any, reading: RuleReading | LinkReading) -> dict[str, Any]:
    return {
        "state": reading.told.state.value,
        "word": reading.told.word,
        "reason": str(reading.told.sentence),
        "paused": row.paused,
        **pause_json(row.pause),
        "pending_objects": reading.pending,
        "pending_bytes": reading.pending_bytes,
        "failed_objects": reading.failed,
        "skipped_objects": reading.skipped,
        "uncounted": reading.overflowed,
        "oldest_at": rfc3339(reading.oldest),
    }


def link_json(reading: LinkReading) -> dict[str, Any]:
    """A link of a rule."""
    link, pace = reading.link, reading.pace
    return {
        "number": link.number,
        "region": link.region,
        "uri": link.uri,
        "workers": link.workers,
        "bytes_per_second": link.bytes_per_second,
        "objects_per_second": link.objects_per_second,
        "store_bytes_per_second": reading.store_bytes,
        "share_bytes_per_second": link.share_bytes,
        **_standing_json(link, reading),
        "exact": link.exact,
        "exact_at": rfc3339(link.exact_at),
        "health": link.health,
        "health_since": rfc3339(link.health_since),
        "health_code": link.health_code or None,
        "health_message": link.health_message or None,
        "next_probe_at": rfc3339(link.probe_at),
        "stale_since": rfc3339(link.stale_since),
        "stale_message": link.stale_message or None,
        "frozen_since": rfc3339(link.frozen_since),
        "frozen_code": link.frozen_code or None,
        "frozen_message": link.frozen_message or None,
        "deletes_waiting": reading.deletes,
        "deletes_to_approve": reading.asked,
        "deleted_objects": link.deleted_objects,
        "foreign_objects": link.foreign_objects,
        "foreign_keys": link.foreign_keys,
        "overwritten_objects": link.overwritten_objects,
        "failed_by_code": [reason_json(count) for count in reading.refused],
        "sent_objects": link.sent_objects,
        "sent_bytes": link.sent_bytes,
        "sent_at": rfc3339(link.sent_at),
        "retries": link.retries,
        "compared_at": rfc3339(link.compared_at),
        "waits_until": rfc3339(reading.facts.held_until),
        "objects_per_second_now": round(pace[0], 3) if pace else None,
        "bytes_per_second_now": round(pace[1], 1) if pace else None,
    }


def reason_json(count: ReasonCount) -> dict[str, Any]:
    """How many objects failed, or were skipped, for a reason."""
    told = {"code": count.code, "status": count.status, "words": count.words}
    return told | {"objects": count.number, "bytes": count.bytes}


def checked(body: Body) -> Mapping[str, Any]:
    """What a body holds. Raises ValidationError."""
    body.is_valid(raise_exception=True)
    validated: Mapping[str, Any] = body.validated_data
    return validated
