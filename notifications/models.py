"""Alerts and what happened to them; channels, and what was sent by each."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Exists, OuterRef, Q

from adapters.sealing import OtherKey, Tampered
from core.errors import Unreadable
from core.notifications.channels import ChannelKind, ChannelSecrets, ChannelWish, target_of
from core.notifications.hours import Hours
from core.notifications.kinds import AlertKind, Severity
from core.notifications.lifecycle import Known
from core.notifications.mail import MailServer
from core.notifications.maintenance import Maintenance
from core.notifications.rules import Rule
from db.fields import ExactJSONField, ExactTextField
from installations.models import OLD_KEY, sealers


class AlertQuerySet(models.QuerySet):
    def current(self) -> AlertQuerySet:
        """Those that have not closed: open ones, and what is only watched so far."""
        return self.filter(closed_at=None)

    def told(self) -> AlertQuerySet:
        """Those that did open."""
        return self.filter(opened_at__isnull=False)

    def open(self) -> AlertQuerySet:
        """Those that are open now."""
        return self.current().told()

    def end_snooze(self, alert: Alert) -> bool:
        """It is about to be told again; false if somebody has answered it, or snoozed it anew, since it was read."""
        as_read = self.open().filter(
            pk=alert.pk, acknowledged_at=alert.acknowledged_at, snoozed_until=alert.snoozed_until
        )
        alert.snoozed_until, alert.snoozed_by = None, ""
        return as_read.update(snoozed_until=None, snoozed_by="") == 1


class Alert(models.Model):
    """One thing that is wrong with one subject: from the round in which it was first seen to when it was gone. One that
    never lasted is not kept."""

    kind = models.CharField(max_length=32, help_text="by core.notifications.kinds")
    subject = models.CharField(max_length=300, help_text="what it is about, like mirror/lake-eu")
    severity = models.CharField(max_length=16)
    name = ExactTextField(help_text="the subject as people name it")
    region = models.CharField(max_length=64, blank=True, help_text="where it is; empty: everywhere")
    sentence = ExactTextField(help_text="what is wrong, as it was last told")
    remedy = ExactTextField(help_text="what to do")
    link = models.CharField(max_length=1000, help_text="the path of the page that helps")
    cause = models.CharField(max_length=300, blank=True, help_text="the subject of the alert that explains it now")
    labels = models.JSONField(default=dict, db_default={}, help_text="of the mirror, export or rule, as last seen")
    # Without constraints: mirrors and exports are deleted by versions that do not know of these rows.
    mirror = models.BigIntegerField(null=True, help_text="key of the mirror that it is about")
    export = models.BigIntegerField(null=True, help_text="key of the export that it is about")
    rule = models.BigIntegerField(null=True, help_text="key of the replication rule that it, or a link of, is about")
    since = models.DateTimeField(help_text="since when it is wrong, as far as is known")
    seen_at = models.DateTimeField(help_text="when it was last seen to be wrong")
    gone = models.IntegerField(default=0, help_text="for so many rounds it was not seen any more")
    opened_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)
    note = ExactTextField(blank=True, help_text="what they said then")
    snoozed_until = models.DateTimeField(null=True)
    snoozed_by = models.CharField(max_length=150, blank=True)
    closing = ExactTextField(blank=True, help_text="how the subject was doing when it closed")
    muted = models.BooleanField(
        default=False, db_default=False, help_text="opened in a maintenance window, and is told when that has ended"
    )

    objects = AlertQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "subject"], condition=Q(closed_at=None), name="alert_open_once")
        ]
        indexes = [models.Index(fields=["closed_at"], name="alert_closed")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.subject}"

    @property
    def known(self) -> Known:
        """For the decision what becomes of it."""
        return Known(self.since, self.opened_at is not None, self.seen_at, self.gone)

    @property
    def word(self) -> str:
        """What kind of alert it is, in words; that of a newer version by its code."""
        return AlertKind(self.kind).word if self.kind in set(AlertKind) else self.kind

    @property
    def says_what_to_do(self) -> bool:
        """Whether its remedy tells more than its sentence: those of mirrors and exports end with what to do."""
        return self.mirror is None and self.export is None

    @property
    def pattern_name(self) -> str:
        """What patterns of names are compared with: of mirrors and rules it, of exports repository/branch, or ""."""
        return self.name.replace(" · ", "/") if self.mirror or self.export or self.rule else ""

    @property
    def level(self) -> int:
        """How bad it is: larger is worse."""
        return Severity(self.severity).level

    @property
    def severity_word(self) -> str:
        """How bad it is, in a word."""
        return Severity(self.severity).word

    @property
    def icon(self) -> str:
        """The icon that goes with its tone."""
        return "check" if self.closed_at else "cross" if self.tone == "bad" else "hand"

    @property
    def tone(self) -> str:
        """The colour of its severity."""
        if self.closed_at:
            return "quiet"
        return "bad" if self.level >= Severity.ERROR.level else "warn"


class MaintenanceWindow(models.Model):
    """A time of planned work: what is covered is shown, and not told."""

    names = models.JSONField(default=list, help_text="patterns of mirrors, exports and rules; none: all")
    regions = models.JSONField(default=list, help_text="patterns of regions; none: all")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(help_text="one that was ended early: when that was")
    reason = models.CharField(max_length=200)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField()
    ended_by = models.CharField(max_length=150, blank=True, help_text="who ended it early; empty: nobody")

    class Meta:
        indexes = [models.Index(fields=["ends_at"], name="maintenance_ends")]

    def __str__(self) -> str:
        return f"maintenance of {self.wish.subject}"

    @property
    def wish(self) -> Maintenance:
        """What it covers, and when."""
        return Maintenance(self.starts_at, self.ends_at, self.reason, tuple(self.names), tuple(self.regions))

    def covers(self, alert: Alert) -> bool:
        """Whether an alert is about what is worked on, whenever."""
        return self.wish.covers(name=alert.pattern_name, region=alert.region)


class Event(models.Model):
    """An alert opened or closed, or is told again: written in the transaction that makes it so. `message` is what is
    told of it."""

    class Verb(models.TextChoices):
        OPENED = "opened"
        CLOSED = "closed"
        REMINDED = "reminded"

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="events")
    verb = models.CharField(max_length=16, choices=Verb.choices)
    at = models.DateTimeField()
    message = ExactJSONField(help_text="the alert as it was then, as the API tells it")

    class Meta:
        indexes = [models.Index(fields=["at"], name="event_at")]

    def __str__(self) -> str:
        return f"{self.alert} {self.verb}"


class Channel(models.Model):
    """Where messages go. What is secret is sealed together with the name: in another row it can't be opened."""

    name = models.CharField(max_length=63, unique=True)
    kind = models.CharField(max_length=16, help_text="by core.notifications.channels")
    enabled = models.BooleanField(default=True)
    least_severity = models.CharField(max_length=16)
    kinds = models.JSONField(default=list, help_text="of alerts that are told; none: all")
    names = models.JSONField(default=list, help_text="patterns of mirrors, exports and rules; none: all")
    regions = models.JSONField(default=list, help_text="patterns of regions; none: all")
    labels = models.JSONField(default=list, db_default=[], help_text="patterns of labels, by core.labels; none: all")
    tell_again_seconds = models.IntegerField(help_text="so long after an alert was told it is told again; 0: never")
    hours = models.JSONField(default=dict, db_default={}, help_text="fields of core.notifications.hours.Hours; {}: any")
    mail = models.JSONField(default=dict, db_default={}, help_text="fields of core.notifications.mail.MailServer")
    target = models.CharField(max_length=300, help_text="what may be shown of where messages go")
    sealed = models.TextField(help_text="address, signing secret, password")
    version = models.BigIntegerField(default=1, help_text="counts changes")
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def wish(self) -> ChannelWish:
        """Its settings."""
        server = self.mail_server if self.kind == ChannelKind.MAIL else None
        return ChannelWish(self.name, self.kind, self.enabled, self.rule, server)

    @property
    def mail_server(self) -> MailServer:
        """Where mail is handed in, of a channel that sends mail."""
        return MailServer.of(self.mail)

    @property
    def kind_word(self) -> str:
        """The kind in a word; that of a newer version by its code."""
        return ChannelKind(self.kind).word if self.kind in {*ChannelKind} else self.kind

    @property
    def rule(self) -> Rule:
        """What is told by it."""
        lists = tuple(self.kinds), tuple(self.names), tuple(self.regions)
        hours = Hours.of(self.hours) if self.hours else None
        return Rule(self.least_severity, *lists, self.tell_again_seconds, hours, tuple(self.labels))

    def hears(self, alert: Alert) -> bool:
        """Whether an alert is told by it."""
        about = {"name": alert.pattern_name, "region": alert.region, "labels": alert.labels}
        return self.rule.hears(alert.kind, alert.severity, **about)

    def put(self, wish: ChannelWish, secrets: ChannelSecrets) -> None:
        """Take settings and secrets; nothing is saved."""
        self.name, self.kind, self.enabled = wish.name, wish.kind, wish.enabled
        rule = wish.rule
        self.least_severity, self.tell_again_seconds = rule.least_severity, rule.tell_again_seconds
        self.kinds, self.names, self.regions = list(rule.kinds), list(rule.names), list(rule.regions)
        self.labels = list(rule.labels)
        self.hours = rule.hours.fields if rule.hours else {}
        self.mail = wish.mail.fields if wish.mail else {}
        self.target = target_of(wish, secrets)
        self.sealed = sealers(SEALED_FOR)[0].seal(json.dumps(_sealed(wish.kind, secrets)), self._about)

    def secrets(self) -> ChannelSecrets:
        """Its secrets, opened with the key of now or the one before. Raises Unreadable."""
        for sealer in sealers(SEALED_FOR):
            try:
                return ChannelSecrets(*json.loads(sealer.open(self.sealed, self._about)))
            except OtherKey:
                continue
            except Tampered:
                raise Unreadable(
                    f"the row of the channel '{self.name}' was changed by something other than LakeMirror, so its "
                    "secrets are not used",
                    hint="Find out who writes to the database, then edit the channel and enter its secrets again",
                ) from None
        raise Unreadable(
            f"the secrets of the channel '{self.name}' were sealed with another auth.encrypt.secret_key",
            hint=f"Give the old key as {OLD_KEY} and run manage.py rotate_secrets, or enter the secrets again",
        )

    @property
    def is_of_now(self) -> bool:
        """Whether the key of now opens it, without that of before."""
        return self.sealed.split(".")[1:2] == [sealers(SEALED_FOR)[0].key_id]

    @property
    def _about(self) -> str:
        return f"channel {self.name}"


SEALED_FOR = "notifications"


def _sealed(kind: str, secrets: ChannelSecrets) -> list[str]:
    """Two texts for a webhook, three for others: a version that knows only webhooks takes no Apprise URL for one."""
    values = [secrets.url, secrets.signing_secret, secrets.password]
    return values[:2] if kind == ChannelKind.WEBHOOK else values


class DeliveryQuerySet(models.QuerySet):
    def waiting(self) -> DeliveryQuerySet:
        """Those that have neither arrived nor been given up."""
        return self.filter(state=Delivery.State.WAITING)

    def due(self, now: datetime) -> DeliveryQuerySet:
        """Those that are to be sent now, the oldest first. What happened to an alert is told in order: nothing of it is
        sent while something before waits."""
        before = Delivery.objects.waiting().filter(
            channel=OuterRef("channel"), event__alert=OuterRef("event__alert"), pk__lt=OuterRef("pk")
        )
        return self.waiting().filter(~Exists(before), due_at__lte=now).order_by("due_at", "pk")

    def claim(self, pk: int, *, tries: int, now: datetime) -> bool:
        """Write down that it is about to be sent once more; false if somebody else has, or it is over."""
        return self.waiting().filter(pk=pk, tries=tries).update(tries=tries + 1, tried_at=now) == 1

    def note(self, pk: int, *, tries: int, **outcome: Any) -> bool:
        """Write down what came of the try that was claimed as this one; false if there was another since."""
        return self.waiting().filter(pk=pk, tries=tries).update(**outcome) == 1


class Delivery(models.Model):
    """An event on its way to a channel: made with the event, sent by the channel's duty. Its `uid` is the same in each
    try, so that a receiver can tell one that it has already."""

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        GIVEN_UP = "given_up", "given up"

    event = models.ForeignKey(Event, models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(Channel, models.CASCADE, related_name="deliveries")
    uid = models.UUIDField(default=uuid.uuid4, unique=True)
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    tries = models.IntegerField(default=0)
    tried_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    log = ExactJSONField(default=list, help_text="the last tries: at, seconds, answer")

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["event", "channel"], name="delivery_once")]
        indexes = [models.Index(fields=["channel", "state", "due_at"], name="delivery_due")]

    def __str__(self) -> str:
        return str(self.uid)

    @property
    def answer(self) -> str:
        """What the last try got; "" before there was one that ended."""
        return str(self.log[-1]["answer"]) if self.log else ""
