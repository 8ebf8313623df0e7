"""The verbs of sessions: who is signed in where, and ending it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from audit.verbs import Verb
from core.errors import NotFound
from rbac.models import HANDLE_DIGITS, Session, User
from rbac.services import Actor, audit

SHOWN = 100


def sessions_of(user: User) -> Sequence[Session]:
    """A user's sessions that are open, the one that was seen last first; a hundred at most."""
    return list(Session.objects.open_of(user, timezone.now())[:SHOWN])


@transaction.atomic
def session_end(*, actor: Actor, user: User, handle: str) -> None:
    """Sign one browser of a user out; NotFound if it is none of theirs."""
    if len(handle) != HANDLE_DIGITS or not Session.objects.filter(user=user, pk__startswith=handle).delete()[0]:
        raise NotFound("there is no such session: it may have ended")
    _note(actor, user, 1)


@transaction.atomic
def sessions_end(*, actor: Actor, user: User, but: str = "") -> int:
    """Sign all browsers of a user out, but that of one handle; gives how many."""
    rows = Session.objects.filter(user=user)
    number: int = (rows.exclude(pk__startswith=but) if but else rows).delete()[0]
    if number:
        _note(actor, user, number)
    return number


def handle_of(request: Any) -> str:
    """The session of a request; "" where it has none."""
    row = getattr(request.session, "row", None)
    return row.handle if row else ""


def _note(actor: Actor, user: User, number: int) -> None:
    audit(
        actor=actor, right=("auth:UpdateUser", user.arn), verb=Verb.END_SESSIONS, before={"sessions": number}, after={}
    )
