"""Replication rules as JSON, and the bodies that their API takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from core.replicating.deletes import DELETE_MOST, DELETE_PERCENT, MOST_MOST
from core.replicating.explain import STATES
from core.replicating.states import Health, OpenStatus, Prevails, Versions
from core.replicating.wishes import (
    BOUNDS,
    LONGEST_SCAN,
    MOST_SWEEP_HEADS,
    MOST_TARGETS,
    SCAN_EVERY,
    SHORTEST_SCAN,
    WORKERS,
    RuleWish,
    TargetWish,
)
from core.travelling.describing import Metadata
from replication.api.fields import Tags, Text, WholeNumber
from replication.status.rules import LinkReading, ReasonCount, RuleReading
from web.labels import Labels
from web.pauses import PauseAnswer, pause_json
from web.schemas import CheckAnswer, number_or_null, text_or_null, time_or_null
from web.serializers import Body, TrueOrFalse, rfc3339

LONGEST_NAME, LONGEST_URI, LONGEST_CODE = 63, 2000, 48


def limit(name: str, **more: Any) -> WholeNumber:
    """One of BOUNDS; null is no limit, but for workers."""
    least, most = BOUNDS[name]
    return WholeNumber(required=False, allow_null=name != "workers", min_value=least, max_value=most, **more)


class PartOfBody(serializers.Serializer):
    """An object in a body. Unknown fields are refused there, too."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({unknown[0]: f"is not a field here (known: {', '.join(self.fields)})"})
        return super().to_internal_value(data)


class PlaceBody(PartOfBody):
    """A place in the store of a region."""

    region = Text(max_length=64)
    uri = Text(max_length=LONGEST_URI, help_text="s3://BUCKET[/PREFIX]")


class TargetBody(PlaceBody):
    """A place to copy to, and how fast."""

    workers = limit("workers", default=WORKERS, help_text="objects at once")
    bytes_per_second = limit("bytes_per_second", default=None)
    objects_per_second = limit("objects_per_second", default=None)


def _most(most: int, help_text: str) -> WholeNumber:
    return WholeNumber(required=False, min_value=0, max_value=most, help_text=help_text)


class RuleSettings(Body):
    """What may be changed of a rule. What is left out stays."""

    existing = TrueOrFalse(required=False, help_text="copy objects that were last written before the rule was created")
    new = TrueOrFalse(required=False, help_text="copy objects that were last written after that")
    scan_every = WholeNumber(
        required=False, min_value=SHORTEST_SCAN, max_value=LONGEST_SCAN, help_text="seconds between two comparisons"
    )
    labels = Labels(required=False)
    tags = Tags(required=False, help_text="copy only objects that have all of these; {}: all objects")
    metadata = serializers.ChoiceField(
        [kind.value for kind in Metadata],
        required=False,
        help_text="all: tags, retention, legal holds, and changes of these and of headers travel, too; content: only "
        "the bytes, with the headers that they had then. all for a new rule unless told",
    )
    storage_class = Text(
        required=False,
        allow_blank=True,
        max_length=64,
        help_text="of copies; empty: the store's default; same: the source's",
    )
    sweep_heads_per_second = WholeNumber(
        required=False,
        min_value=0,
        max_value=MOST_SWEEP_HEADS,
        help_text="so many objects a second are asked for changes of metadata, which listings don't show; 0: none",
    )
    markers = TrueOrFalse(
        required=False,
        help_text="delete at the targets what is deleted at the source, and was copied; false unless told",
    )
    delete_percent = _most(
        100, "more deletions within 24 hours, in percent of what a link has, wait for approval; 10 unless told"
    )
    delete_most = _most(MOST_MOST, "more deletions within 24 hours wait for approval: 10000 unless told")


class RuleCreation(RuleSettings):
    """A rule to be created."""

    name = Text(max_length=LONGEST_NAME, help_text="lower-case letters, digits and hyphens")
    source = PlaceBody()
    targets = TargetBody(many=True, min_length=1, max_length=MOST_TARGETS)
    versions = serializers.ChoiceField(
        [one.value for one in Versions],
        required=False,
        help_text="all: every version and delete marker, in order; it can't be changed; latest unless told",
    )
    conflict = serializers.ChoiceField(
        [one.value for one in Prevails],
        required=False,
        help_text="whose object stays where source and target differ; newest: the one that was written later, so that "
        "other such rules may lead back; it can't be changed; source unless told",
    )
    overwrite = TrueOrFalse(
        required=False,
        help_text="targets need not be empty: what differs from the source there may be replaced; false unless told",
    )

    def wish(self) -> RuleWish:
        """What the service takes."""
        given = self.validated_data
        return RuleWish(
            name=given["name"],
            region=given["source"]["region"],
            uri=given["source"]["uri"],
            targets=[TargetWish(**target) for target in given["targets"]],
            existing=given.get("existing", True),
            new=given.get("new", True),
            scan_every=given.get("scan_every", SCAN_EVERY),
            labels=given.get("labels", {}),
            tags=given.get("tags", {}),
            metadata=given.get("metadata", ""),
            storage_class=given.get("storage_class", ""),
            sweep_heads_per_second=given.get("sweep_heads_per_second", 0),
            overwrite=given.get("overwrite", False),
            versions=given.get("versions", Versions.LATEST.value),
            markers=given.get("markers", False),
            delete_percent=given.get("delete_percent", DELETE_PERCENT),
            delete_most=given.get("delete_most", DELETE_MOST),
            conflict=given.get("conflict", Prevails.SOURCE.value),
        )


class LinkLimits(Body):
    """How fast a link may copy. What is left out stays; null is no limit."""

    workers = limit("workers")
    bytes_per_second = limit("bytes_per_second")
    objects_per_second = limit("objects_per_second")


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
    foreign_objects = serializers.IntegerField(
        allow_null=True, help_text="at the target alone, not copied by the link, and left; null: not known"
    )
    foreign_keys = serializers.ListField(child=serializers.CharField(), help_text="the first 20 of them")
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
    markers = serializers.BooleanField()
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
        "markers": rule.markers,
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
