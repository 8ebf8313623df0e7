"""Alerts, and what happened to them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from core.notifications.kinds import AlertKind, Severity
from core.notifications.lifecycle import Known
from db.fields import ExactTextField


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
    # Without constraints: mirrors and exports are deleted by versions that do not know of these rows.
    mirror = models.BigIntegerField(null=True, help_text="key of the mirror that it is about")
    export = models.BigIntegerField(null=True, help_text="key of the export that it is about")
    since = models.DateTimeField(help_text="since when it is wrong, as far as is known")
    seen_at = models.DateTimeField(help_text="when it was last seen to be wrong")
    gone = models.IntegerField(default=0, help_text="for so many rounds it was not seen any more")
    opened_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    closing = ExactTextField(blank=True, help_text="how the subject was doing when it closed")

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


class Event(models.Model):
    """An alert opened or closed: written in the transaction that makes it so. `message` is what is told of it."""

    class Verb(models.TextChoices):
        OPENED = "opened"
        CLOSED = "closed"

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="events")
    verb = models.CharField(max_length=16, choices=Verb.choices)
    at = models.DateTimeField()
    message = models.JSONField(help_text="the alert as it was then, as the API tells it")

    class Meta:
        indexes = [models.Index(fields=["at"], name="event_at")]

    def __str__(self) -> str:
        return f"{self.alert} {self.verb}"
