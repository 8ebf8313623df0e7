"""The bodies that the API of replication rules takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from core.replicating.deletes import DELETE_MOST, DELETE_PERCENT, MOST_MOST
from core.replicating.states import Order, Prevails, Versions
from core.replicating.wishes import (
    BOUNDS,
    LAST_PRIORITY,
    LONGEST_SCAN,
    MOST_SWEEP_HEADS,
    MOST_TARGETS,
    SCAN_EVERY,
    SHORTEST_SCAN,
    STORE_BOUNDS,
    WORKERS,
    RuleWish,
    TargetWish,
)
from core.travelling.describing import Metadata
from replication.api.fields import Tags, Text, WholeNumber
from web.labels import Labels
from web.serializers import Body, TrueOrFalse

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
    tags = Tags(
        required=False,
        help_text="copy only objects that have all of these, with versions all only such versions and no delete "
        "markers; {}: all objects",
    )
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
    priority = WholeNumber(
        required=False,
        min_value=0,
        max_value=LAST_PRIORITY,
        help_text="among links that share a limit of their store: lower ones come first; 0 unless told",
    )
    order = serializers.ChoiceField(
        [one.value for one in Order],
        required=False,
        help_text="which open objects are copied first: those that were noted last, or first; new-first unless told",
    )
    markers = TrueOrFalse(
        required=False,
        help_text="delete at the targets what is deleted at the source, and was copied; false unless told",
    )
    purges = TrueOrFalse(
        required=False,
        help_text="with versions all: purge at the targets what the source has purged; false unless told",
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
            purges=given.get("purges", False),
            delete_percent=given.get("delete_percent", DELETE_PERCENT),
            delete_most=given.get("delete_most", DELETE_MOST),
            conflict=given.get("conflict", Prevails.SOURCE.value),
            priority=given.get("priority", 0),
            order=given.get("order", Order.NEW_FIRST.value),
        )


class LinkLimits(Body):
    """How fast a link may copy. What is left out stays; null is no limit."""

    workers = limit("workers")
    bytes_per_second = limit("bytes_per_second")
    objects_per_second = limit("objects_per_second")
    store_bytes_per_second = WholeNumber(
        required=False,
        allow_null=True,
        min_value=STORE_BOUNDS[0],
        max_value=STORE_BOUNDS[1],
        help_text="what all links to the same store may do together; needs the right on all their rules",
    )
