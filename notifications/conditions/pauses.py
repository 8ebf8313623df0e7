"""Pauses that last for longer than was said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.pauses import Pause
from exports.status.export import ExportSummary
from mirrors.status.mirror import MirrorStatus
from notifications.conditions.observation import Observation, of_export, of_mirror, with_state


def look_at_pauses(
    seen: Observation, mirrors: Sequence[MirrorStatus], exports: Sequence[ExportSummary], now: datetime
) -> None:
    """Subjects of their own: that a mirror is resumed is known also while nobody knows how it is doing."""
    for one in mirrors:
        mirror, subject = one.mirror, f"mirror/{one.mirror.name}/pause"
        words = with_state(one.state.word, one.sentence)
        seen.standings[subject] = Standing(words, mirror=mirror.pk)
        if one.paused_too_long:
            overdue = _overdue(AlertKind.MIRROR_PAUSED_TOO_LONG, subject, mirror.name, mirror.pause, now)
            seen.troubles.append(of_mirror(mirror, overdue))
    for each in exports:
        export, subject = each.export, f"export/{each.export.pk}/pause"
        seen.standings[subject] = Standing(with_state(each.told.word, str(each.told.sentence)))
        if each.paused_too_long:
            name = f"{export.repository} · {export.branch}"
            overdue = _overdue(AlertKind.EXPORT_PAUSED_TOO_LONG, subject, name, export.pause, now)
            seen.troubles.append(of_export(export, overdue))


def _overdue(kind: AlertKind, subject: str, name: str, pause: Pause | None, now: datetime) -> Condition:
    pause = pause or Pause()
    return Condition(kind=kind, subject=subject, sentence=str(pause.overdue(name, now)), since=pause.until)
