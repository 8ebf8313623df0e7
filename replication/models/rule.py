"""A rule: which place is copied, and how far the looks through it are; its links, one for each target."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from core.replicating.eligible import in_time
from core.replicating.states import Health, Order, Prevails, Versions
from core.travelling.describing import Metadata, Terms
from db.fields import ExactTextField
from db.labels import Labelled
from db.pauses import Pausable
from replication.querysets import LinkQuerySet, RuleQuerySet

LONGEST_NAME = 63
LONGEST_URI = 2048


class Rule(Pausable, Labelled):
    """What is below a place in the store of a region is copied to 1 to 8 targets. Nothing is deleted, but by one with
    `markers` or `purges`."""

    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    region = models.CharField(max_length=64, help_text="of the source")
    uri = models.CharField(
        max_length=LONGEST_URI, help_text="of the source: s3://bucket[/prefix], without a last slash"
    )
    existing = models.BooleanField(default=True, help_text="objects that were last written before the rule was made")
    new = models.BooleanField(default=True, help_text="objects that were last written after that")
    versions = models.CharField(
        max_length=8,
        choices=[(one.value, one.value) for one in Versions],
        default=Versions.LATEST.value,
        db_default=Versions.LATEST.value,
        help_text="the latest object of each key, or all versions and delete markers; it never changes",
    )
    conflict = models.CharField(
        max_length=8,
        choices=[(one.value, one.value) for one in Prevails],
        default=Prevails.SOURCE.value,
        db_default=Prevails.SOURCE.value,
        help_text="whose object stays where source and target differ; it never changes",
    )
    tags = models.JSONField(default=dict, db_default={}, help_text="all of which an object has to have; {}: any object")
    metadata = models.CharField(
        max_length=16,
        choices=[(kind.value, kind.value) for kind in Metadata],
        default=Metadata.CONTENT.value,
        db_default=Metadata.CONTENT.value,
        help_text="what travels beside the bytes; content: as rules of versions before did",
    )
    storage_class = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="of copies; empty: the store's; same: the source's",
    )
    sweep_heads_per_second = models.IntegerField(
        default=0, db_default=0, help_text="to find changes of metadata that no listing shows; 0: none"
    )
    swept_to = models.BinaryField(null=True, help_text="keys up to this one are compared; null: no sweep goes on")
    swept_at = models.DateTimeField(null=True, help_text="when a sweep came to its end; null: none yet")
    scan_every = models.IntegerField(default=300, help_text="seconds from one look through the whole place to the next")
    priority = models.IntegerField(
        default=0, db_default=0, help_text="among links that share a limit of their store: lower ones come first"
    )
    order = models.CharField(
        max_length=16,
        choices=[(one.value, one.value) for one in Order],
        default=Order.OLDEST_FIRST.value,
        db_default=Order.OLDEST_FIRST.value,
        help_text="which open objects have their turn first",
    )
    markers = models.BooleanField(default=False, db_default=False, help_text="deletions at the source are followed")
    purges = models.BooleanField(
        default=False,
        db_default=False,
        help_text="versions that are deleted at the source for good are deleted at the targets, too",
    )
    delete_percent = models.IntegerField(
        default=10, db_default=10, help_text="of what a link has: more deletions at once wait for approval"
    )
    delete_most = models.IntegerField(
        default=10_000, db_default=10_000, help_text="more deletions at once wait for approval"
    )
    deleting = models.BooleanField(default=False, help_text="it goes, in the background, with all its rows")
    cycle = models.BigIntegerField(default=0, help_text="how many looks through the whole place have come to an end")
    cycle_began_at = models.DateTimeField(null=True, help_text="of the look at hand; null: none goes on")
    spread = models.BooleanField(
        default=False,
        db_default=False,
        help_text="the look at hand takes its time: a part of the stretches every scan_every",
    )
    cycle_objects = models.BigIntegerField(default=0, help_text="at the source, seen by the look at hand so far")
    cycle_bytes = models.BigIntegerField(default=0)
    cycle_shown = models.BigIntegerField(
        default=0, db_default=0, help_text="where all versions are copied: keys that the source shows, seen so far"
    )
    full_shown = models.BigIntegerField(default=0, db_default=0, help_text="the same by the last look")
    full_began_at = models.DateTimeField(null=True, help_text="of the last look that came to its end; null: none yet")
    full_ended_at = models.DateTimeField(null=True)
    full_objects = models.BigIntegerField(default=0, help_text="at the source, by that look")
    full_bytes = models.BigIntegerField(default=0)
    last_link = models.IntegerField(
        default=0, db_default=0, help_text="the highest number of a link that has gone, or came later"
    )
    scan_wanted = models.BooleanField(default=False, help_text="somebody asked for a look at once")
    error = ExactTextField(blank=True, help_text="why the source can't be listed; empty: it can")
    error_since = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    objects = RuleQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def audit_name(self) -> str:
        """The subject of events about it."""
        return f"replication/{self.name}"

    @property
    def both_ways(self) -> bool:
        """Whether the newer of two objects stays, so that other rules may lead back."""
        return self.conflict == Prevails.NEWEST.value

    @property
    def all_versions(self) -> bool:
        """Whether versions and delete markers are copied, too."""
        return self.versions == Versions.ALL.value

    @property
    def judges(self) -> bool:
        """Whether it deletes or hides anything at its targets, once that has been judged."""
        return self.markers or self.all_versions

    @property
    def knows_own(self) -> bool:
        """Whether it keeps what of a target is a link's own: only that is ever deleted."""
        return self.markers or self.purges

    def wants(self, modified: datetime | None) -> bool:
        """Whether an object that was last written then is copied; None: nobody knows when."""
        return in_time(modified, self.created_at, existing=self.existing, new=self.new)

    @property
    def terms(self) -> Terms:
        """What goes with the bytes of its objects, and which tags they need."""
        return Terms(Metadata(self.metadata), self.tags, self.storage_class)


class Link(Pausable):
    """A rule and one of its targets: all that can fail, pause or lag. Its limits hold for running work, too."""

    class State(models.TextChoices):
        UP = Health.UP.value
        DOWN = Health.DOWN.value
        BLOCKED = Health.BLOCKED.value

    rule = models.ForeignKey(Rule, models.CASCADE, related_name="links")
    number = models.IntegerField(help_text="among the links of its rule, from 1; never given twice")
    region = models.CharField(max_length=64, help_text="of the target")
    uri = models.CharField(max_length=LONGEST_URI, help_text="of the target, as the rule's")
    added_at = models.DateTimeField(null=True, help_text="null: with the rule")
    removing = models.BooleanField(
        default=False, db_default=False, help_text="it goes, in the background, with its rows"
    )
    workers = models.IntegerField(default=16, help_text="so many objects at a time")
    bytes_per_second = models.BigIntegerField(null=True, help_text="null: as fast as it goes")
    objects_per_second = models.IntegerField(null=True, help_text="null: as fast as it goes")
    health = models.CharField(max_length=16, choices=State.choices, default=State.UP)
    health_since = models.DateTimeField(null=True, help_text="null: up, and never anything else")
    health_code = models.CharField(max_length=48, blank=True, default="", help_text="core's Code; empty while it is up")
    health_message = ExactTextField(blank=True, default="")
    probe_at = models.DateTimeField(null=True, help_text="when it is tried next, while it is down or blocked")
    probes = models.IntegerField(default=0, help_text="how many tries failed since it is")
    tally = models.JSONField(default=dict, help_text="what may yet make it down or blocked: core's Tally")
    sent_objects = models.BigIntegerField(default=0, help_text="copied since the link was made")
    sent_bytes = models.BigIntegerField(default=0)
    sent_at = models.DateTimeField(null=True, help_text="when an object was copied last")
    retries = models.BigIntegerField(default=0, help_text="tries that failed since the link was made")
    pace_objects = models.FloatField(default=0.0, help_text="a second, in the last round that copied anything")
    pace_bytes = models.FloatField(default=0.0)
    oldest_at = models.DateTimeField(null=True, help_text="since when the oldest pending object waits; null: none does")
    listing_error = ExactTextField(blank=True, default="", help_text="why the target could not be listed the last time")
    compared_at = models.DateTimeField(
        null=True, help_text="when a look ended that compared it with the whole source; null: none yet"
    )
    uncompared = models.BooleanField(
        default=False,
        help_text="somewhere in the look at hand nobody could read what the target has, or note what it lacks",
    )
    overflowed = models.BooleanField(
        default=False,
        help_text="more lacks than rows are kept of, until a whole look has noted all",
    )
    exact = models.BooleanField(
        null=True,
        help_text="versions keep their ids and times there, as was tried at `exact_at`; null: never tried",
    )
    exact_at = models.DateTimeField(null=True)
    identity = models.CharField(
        max_length=32, blank=True, default="", db_default="", help_text="names the link in stores; empty: not yet"
    )
    pinned_at = models.DateTimeField(
        null=True, help_text="when the link's pin was written at the target; null: not yet"
    )
    first_store = ExactTextField(
        blank=True,
        default="",
        db_default="",
        help_text="the store of its region when it was created, as places name it; empty: not known",
    )
    stale_since = models.DateTimeField(
        null=True,
        help_text="the target has not the link's pin: nothing is written before somebody confirms; null: it has",
    )
    stale_message = ExactTextField(blank=True, default="", db_default="")
    frozen_since = models.DateTimeField(
        null=True, help_text="nothing is deleted, for the source is not as it was; null: is"
    )
    frozen_code = models.CharField(max_length=48, blank=True, default="", db_default="", help_text="core's Code")
    frozen_message = ExactTextField(blank=True, default="", db_default="")
    source_created = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="when the source's bucket was created, as told"
    )
    unnoted_deletes = models.BooleanField(
        default=False, db_default=False, help_text="there were more deletions than rows are kept of, in the last look"
    )
    deletes_by_hour = models.JSONField(
        default=dict,
        db_default={},
        help_text="how many deletions were let through without an approval, by the hour since 1970; of the last day",
    )
    unsure_deletes = models.BooleanField(
        default=False, db_default=False, help_text="somewhere in the look at hand nobody knew what is the link's own"
    )
    foreign_objects = models.BigIntegerField(
        null=True, help_text="at the target alone, and not the link's, by the last whole look; null: nobody knows"
    )
    foreign_keys = models.JSONField(default=list, db_default=[], help_text="the first of them")
    deleted_objects = models.BigIntegerField(
        default=0, db_default=0, help_text="at the target, since the link was made"
    )
    share_bytes = models.BigIntegerField(
        null=True, help_text="a second, of what links to its store may do together; null: nothing is shared"
    )
    overwritten_objects = models.BigIntegerField(
        default=0, db_default=0, help_text="that somebody had written at the target, since the link was made"
    )
    writes_until = models.DateTimeField(null=True, help_text="nothing that was ever begun is written after it")
    asks_up_to = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="open objects up to this id may have been written by a worker that was lost: look before writing",
    )

    objects = LinkQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rule", "number"], name="replication_link_once")]
        ordering = ["rule", "number"]

    def __str__(self) -> str:
        return f"{self.rule} to {self.region} ({self.uri})"

    @property
    def audit_name(self) -> str:
        """The subject of events about it."""
        return f"{self.rule.audit_name}/links/{self.number}"

    @property
    def last_overwritten(self) -> models.QuerySet[models.Model]:
        """The newest of what somebody had written at the target, and a newer object has replaced."""
        return self.overwritten.all()[:10]


class StoreLimit(models.Model):
    """What all links to the store of a region may write there together."""

    region = models.CharField(max_length=64, unique=True)
    bytes_per_second = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.bytes_per_second} B/s to {self.region}"
