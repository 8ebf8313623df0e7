"""The duty `alerts`: every few seconds it looks at what is wrong, opens alerts for what lasts and closes what is gone.

One row for all deployments of a database: whoever takes it up looks for all.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Standing, Step, step_for
from db import clock
from deployment import config
from jobs import duties
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from notifications import outbox
from notifications.conditions import Observation, Trouble, by_key, observe
from notifications.models import Alert

DUTY = "alerts"
SECONDS = 10.0
SUBJECT = 1
KEPT_FOR = timedelta(days=90)
"""So long alerts are kept after they closed."""
LOOKED_WITHIN = timedelta(minutes=2)
"""A look that came to its end has to be no older to say anything about now."""
AT_A_TIME = 100
_TOLD_ANEW = ["sentence", "remedy", "link", "name", "region", "labels", "cause", "seen_at", "gone"]


def look_round() -> None:
    """By each controller: the duty is there."""
    duties.ensure(DUTY, SUBJECT, config.current().region)


def needed(regions: list[str]) -> list[int]:
    """Any deployment may take it up."""
    return [SUBJECT]


def looked_lately(now: datetime) -> bool:
    """Whether somebody knows what is wrong at this moment: a look came to its end."""
    return Duty.objects.filter(kind=DUTY, subject=SUBJECT, succeeded_at__gt=now - LOOKED_WITHIN).exists()


def watch(lease: Lease) -> DutyOutcome:
    """One round. What can't be read raises, and then nothing opens or closes."""
    now = clock.now()
    observation = observe(now)
    with lease.transaction():
        settled = Settlement(observation, now)
        settled.settle()
        late = outbox.after_maintenance(now)
        again = outbox.remind(now)
        Alert.objects.filter(closed_at__lt=now - KEPT_FOR).delete()
    changes = f"{settled.opened} opened, {settled.closed} closed, {again} told again, {late} after maintenance"
    return DutyOutcome(f"{Alert.objects.open().count()} open, {changes}")


class Settlement:
    """Brings the alerts where one look says, in a transaction of the caller's; counts what `opened` and `closed`."""

    def __init__(self, observation: Observation, now: datetime) -> None:
        self.opened = self.closed = 0
        self._troubles = by_key(observation.troubles)
        self._standings = observation.standings
        self._now = now
        self._after = config.current().notifications.after
        self._rows = {(row.kind, row.subject): row for row in Alert.objects.current().filter(kind__in=AlertKind)}
        self._open = {(row.kind, row.subject) for row in self._rows.values() if row.opened_at}
        self._changed: list[Alert] = []

    def settle(self) -> None:
        """Go through all that is wrong, or was."""
        for key in sorted(self._rows.keys() | self._troubles.keys()):
            row, trouble = self._rows.get(key), self._troubles.get(key)
            if row is not None and self._was_another(row):
                self._end(row)
                row = None
            if trouble is not None:
                self._is_wrong(row, self._explained(trouble))
            elif row is not None:
                self._is_gone(row)
        Alert.objects.bulk_update(self._changed, _TOLD_ANEW, batch_size=AT_A_TIME)

    def _explained(self, trouble: Trouble) -> Trouble:
        """That a mirror is unknown is no news while it has another alert open, which stays open for just that."""
        condition = trouble.condition
        others = {kind for kind, subject in self._open if subject == condition.subject} - {condition.kind.value}
        if condition.kind is AlertKind.MIRROR_UNKNOWN and others and not condition.cause:
            return replace(trouble, condition=replace(condition, cause=condition.subject))
        return trouble

    def _is_wrong(self, row: Alert | None, trouble: Trouble) -> None:
        condition = trouble.condition
        step = step_for(condition, row.known if row else None, None, self._now, self._after)
        if step is Step.FORGET and row is not None:
            row.delete()
        elif step is Step.KEEP and row is not None:
            self._tell(row, trouble)
            self._changed.append(row)
        elif step in (Step.WATCH, Step.OPEN):
            row = row or Alert(kind=condition.kind, subject=condition.subject, since=condition.since or self._now)
            self._tell(row, trouble)
            row.opened_at = self._now if step is Step.OPEN else None
            row.save()
            if step is Step.OPEN:
                outbox.opened(row, self._now)
                self.opened += 1

    def _tell(self, row: Alert, trouble: Trouble) -> None:
        condition = trouble.condition
        row.severity = condition.kind.severity
        row.sentence, row.cause = condition.sentence, condition.cause
        row.name, row.region, row.link, row.remedy = trouble.name, trouble.region, trouble.link, trouble.remedy
        row.mirror, row.export, row.rule = trouble.mirror, trouble.export, trouble.rule
        row.labels = dict(trouble.labels)
        row.seen_at, row.gone = self._now, 0

    def _is_gone(self, row: Alert) -> None:
        standing = self._standings.get(row.subject)
        step = step_for(None, row.known, standing, self._now, self._after)
        if step is Step.FORGET:
            row.delete()
        elif step is Step.MISS:
            row.gone += 1
            self._changed.append(row)
        elif step is Step.CLOSE:
            self._close(row, standing)

    def _was_another(self, row: Alert) -> bool:
        """Whether it is about a mirror that was deleted, and another one has its name by now."""
        standing = self._standings.get(row.subject)
        return standing is not None and standing.mirror != row.mirror

    def _end(self, row: Alert) -> None:
        self._open.discard((row.kind, row.subject))
        if row.opened_at:
            self._close(row, None)
        else:
            row.delete()

    def _close(self, row: Alert, standing: Standing | None) -> None:
        """Without what people answered meanwhile: that is theirs to write."""
        row.closed_at = self._now
        row.closing = standing.told if standing else f"{row.name} no longer exists."
        row.save(update_fields=["closed_at", "closing"])
        outbox.closed(row, self._now)
        self.closed += 1
