"""Exports, as their pages read them, and verifications of them that could not be finished."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from core.notifications.kinds import OF_EXPORTS, AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.text.phrases import SHORT_ID, sentence
from exports.models import Export
from exports.status.export import ExportSummary
from installations import contact
from notifications.conditions.observation import UNSURE_EXPORT, Observation, of_export, with_state
from notifications.conditions.regions import region_subject


def look_at_exports(seen: Observation, readings: Sequence[ExportSummary]) -> None:
    for reading in readings:
        export, told = reading.export, reading.told
        subject = _subject(export)
        words = with_state(told.word, str(told.sentence))
        seen.standings[subject] = Standing(words, told.state not in UNSURE_EXPORT, export.succeeded_at)
        if kind := OF_EXPORTS.get(told.state):
            condition = Condition(kind=kind, subject=subject, sentence=str(told.sentence))
            seen.troubles.append(of_export(export, condition))


def look_at_verifications(seen: Observation, readings: Sequence[ExportSummary], now: datetime) -> None:
    """Each is a subject of its own, and over with the next one that comes to an answer, whatever that is. What the
    export, or an outage of its region, is told for explains it."""
    down = {outage.region: region_subject(outage.region, outage.service) for outage in contact.outages(now)}
    for reading in readings:
        export, subject = reading.export, f"{_subject(reading.export)}/verification"
        words = with_state(reading.told.word, str(reading.told.sentence))
        seen.standings[subject] = Standing(words)
        if last := reading.unverified:
            told = f"the verification of {last.ref[:SHORT_ID]} could not be finished: {last.error}"
            kind = AlertKind.EXPORT_UNVERIFIED
            cause = _subject(export) if reading.told.state in OF_EXPORTS else down.get(export.region, "")
            condition = Condition(kind=kind, subject=subject, sentence=str(sentence(told)), since=last.at, cause=cause)
            seen.troubles.append(of_export(export, condition))


def _subject(export: Export) -> str:
    return f"export/{export.pk}"
