"""Rounds of the duty `alerts` at moments that a test chooses."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Condition, Standing
from notifications.conditions import Observation, Trouble
from notifications.models import Alert, Event
from notifications.rounds import Settlement

MIRROR = "mirror/lake-eu"


def trouble(
    kind: AlertKind = AlertKind.MIRROR_LATE,
    subject: str = MIRROR,
    *,
    cause: str = "",
    sentence: str = "Main is 9 min behind.",
    mirror: int | None = None,
) -> Trouble:
    """Something that is wrong."""
    return Trouble(
        condition=Condition(kind=kind, subject=subject, sentence=sentence, cause=cause),
        name=subject.rpartition("/")[2],
        link="/mirrors/lake-eu/",
        remedy=kind.remedy,
        region="eu-west-1",
        mirror=mirror,
    )


def seen(*troubles: Trouble, well: str = MIRROR, sure: bool = True, mirror: int | None = None) -> Observation:
    """A look that found these, and of the subject `well` how it stands."""
    return Observation(list(troubles), {well: Standing("Up to date: all is there.", sure, mirror=mirror)})


class Rounds:
    """Looks that follow each other, `at` so many seconds after the first."""

    def __init__(self, start: datetime) -> None:
        self.start = start

    def at(self, seconds: float, observation: Observation) -> Settlement:
        with transaction.atomic():
            settled = Settlement(observation, self.start + timedelta(seconds=seconds))
            settled.settle()
        return settled


def open_kinds() -> list[str]:
    return list(Alert.objects.open().order_by("kind").values_list("kind", flat=True))


def events() -> list[tuple[str, str]]:
    return list(Event.objects.order_by("pk").values_list("alert__kind", "verb"))
