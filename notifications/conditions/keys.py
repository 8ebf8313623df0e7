"""Access keys that are about to expire, and nothing has taken their place."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from core.mirroring.rpo import in_words
from core.notifications.expiry import TOLD_BEFORE, told_from, urgent_from
from core.notifications.kinds import AlertKind
from core.notifications.lifecycle import Condition, Standing
from core.text.phrases import sentence
from notifications.conditions.observation import Observation, Trouble
from rbac.models import AccessKey

SUBJECTS = "key/"
"""What the subjects of their alerts begin with, then user and key."""
ENDED_LATELY = timedelta(days=1)


def key_subject(username: str, key_id: str) -> str:
    """A key, as the subject of an alert."""
    return f"{SUBJECTS}{username}/{key_id}"


def owner_of(subject: str) -> str:
    """The user of whose key an alert is, by its subject."""
    return subject.removeprefix(SUBJECTS).rpartition("/")[0]


def look_at_keys(seen: Observation, now: datetime) -> None:
    """Those that expire within the time in which that is told, or did a moment ago."""
    for key in _near_their_end(now):
        subject = key_subject(key.user.username, key.key_id)
        seen.standings[subject] = Standing(str(sentence(_standing(key, now))))
        if key.is_usable(now) and not key.replaced:
            seen.troubles.extend(_troubles(key, subject, now))


def _near_their_end(now: datetime) -> Iterable[AccessKey]:
    later = Q(expires_at=None) | Q(expires_at__gt=OuterRef("expires_at"))
    successors = AccessKey.objects.filter(
        later,
        user=OuterRef("user"),
        description=OuterRef("description"),
        created_at__gt=OuterRef("created_at"),
        disabled_at=None,
    )
    rows = AccessKey.objects.filter(expires_at__gt=now - ENDED_LATELY, expires_at__lte=now + TOLD_BEFORE)
    return rows.annotate(replaced=Exists(successors)).select_related("user").order_by("pk")


def _standing(key: AccessKey, now: datetime) -> str:
    if key.disabled_at:
        return f"the access key {key.key_id} is disabled"
    if key.expires_at <= now:
        return f"the access key {key.key_id} has expired"
    if not key.user.is_active:
        return f"{key.user.username} is disabled"
    return f"another key has taken the place of {key.key_id}" if key.replaced else _told(key, now)


def _told(key: AccessKey, now: datetime) -> str:
    what = f" ({key.description})" if key.description else ""
    left = in_words((key.expires_at - now).total_seconds())
    at = f"{key.expires_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"the access key {key.key_id} of {key.user.username}{what} expires in {left}, at {at}"


def _troubles(key: AccessKey, subject: str, now: datetime) -> Iterable[Trouble]:
    begins = {
        AlertKind.KEY_EXPIRING: told_from(key.created_at, key.expires_at),
        AlertKind.KEY_EXPIRING_SOON: urgent_from(key.created_at, key.expires_at),
    }
    for kind, since in begins.items():
        if since is not None and since <= now:
            told = str(sentence(_told(key, now)))
            yield Trouble(
                condition=Condition(kind=kind, subject=subject, sentence=told, since=since),
                name=f"Access key {key.key_id}",
                link=f"{reverse('user_keys', args=[key.user.username])}#key-{key.key_id}",
                remedy=kind.remedy,
            )
