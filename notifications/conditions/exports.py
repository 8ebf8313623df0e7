"""Exports, as their pages read them."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse

from core.notifications.kinds import OF_EXPORTS
from core.notifications.lifecycle import Condition, Standing
from exports.status.export import ExportSummary
from notifications.conditions.observation import UNSURE_EXPORT, Observation, Trouble, with_state


def look_at_exports(seen: Observation, readings: Sequence[ExportSummary]) -> None:
    for reading in readings:
        export, told = reading.export, reading.told
        subject = f"export/{export.pk}"
        words = with_state(told.word, str(told.sentence))
        seen.standings[subject] = Standing(words, told.state not in UNSURE_EXPORT, export.succeeded_at)
        kind = OF_EXPORTS.get(told.state)
        if kind is None:
            continue
        trouble = Trouble(
            condition=Condition(kind=kind, subject=subject, sentence=str(told.sentence)),
            name=f"{export.repository} · {export.branch}",
            link=reverse("export", args=[export.pk]),
            remedy=kind.remedy,
            region=export.region,
            export=export.pk,
            labels=export.labels,
        )
        seen.troubles.append(trouble)
