"""Pauses that last for longer than was said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.urls import reverse

from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.pauses import Pause
from exports.status.export import ExportSummary
from mirrors.status.mirror import MirrorStatus
from notifications.conditions.observation import Observation, Trouble, with_state


def look_at_pauses(
    seen: Observation, mirrors: Sequence[MirrorStatus], exports: Sequence[ExportSummary], now: datetime
) -> None:
    """Subjects of their own: that a mirror is resumed is known also while nobody knows how it is doing."""
    for one in mirrors:
        mirror, subject = one.mirror, f"mirror/{one.mirror.name}/pause"
        words = with_state(one.state.word, one.sentence)
        seen.standings[subject] = Standing(words, mirror=mirror.pk)
        if one.paused_too_long:
            about = {"name": mirror.name, "link": reverse("mirror", args=[mirror.name]), "mirror": mirror.pk}
            kind = AlertKind.MIRROR_PAUSED_TOO_LONG
            seen.troubles.append(
                _overdue(kind, subject, mirror.pause, now, region=mirror.region, labels=mirror.labels, **about)
            )
    for each in exports:
        export, subject = each.export, f"export/{each.export.pk}/pause"
        seen.standings[subject] = Standing(with_state(each.told.word, str(each.told.sentence)))
        if each.paused_too_long:
            about = {"name": f"{export.repository} · {export.branch}", "export": export.pk}
            kind, link = AlertKind.EXPORT_PAUSED_TOO_LONG, reverse("export", args=[export.pk])
            seen.troubles.append(
                _overdue(
                    kind, subject, export.pause, now, link=link, region=export.region, labels=export.labels, **about
                )
            )


def _overdue(kind: AlertKind, subject: str, pause: Pause | None, now: datetime, **about: Any) -> Trouble:
    pause = pause or Pause()
    told = str(pause.overdue(about["name"], now))
    condition = Condition(kind=kind, subject=subject, sentence=told, since=pause.until)
    return Trouble(condition=condition, remedy=kind.remedy, **about)
