"""Sessions of browsers: rows that can be listed and ended, with an idle time and a longest life.

`SESSION_ENGINE` names this module. The cookie holds a random key, the table its digest. A session is noted as seen at
most once a minute, by its own columns: what is kept in it is not written again, so nothing is lost to a race.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import CreateError, UpdateError
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

from deployment import config
from deployment.config_sections import AuthSession
from rbac.models import Session
from web import requests

NOTE_EVERY = timedelta(minutes=1)
POLLS = "live"
"""The element by which a page updates itself: that it does is no sign that anybody is there."""


class SessionStore(db.SessionStore):
    """Django's store in the database, over our own table."""

    row: Session | None = None
    came_from: tuple[str | None, str] = (None, "")
    """Address and browser of the request."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        """The table."""
        return Session

    def exists(self, session_key: str) -> bool:
        """Whether somebody has the key."""
        return Session.objects.filter(pk=digest(session_key)).exists()

    def save(self, must_create: bool = False) -> None:
        """Write what is kept in the session; UpdateError if it was ended meanwhile."""
        if self.session_key is None:
            return self.create()
        data = self._get_session(no_load=must_create)  # type: ignore[attr-defined]
        return self._insert(data) if must_create else self._update(data)

    def delete(self, session_key: str | None = None) -> None:
        """End the session."""
        key = session_key or self.session_key
        if key is not None:
            Session.objects.filter(pk=digest(key)).delete()

    def get_expiry_age(self, **kwargs: Any) -> int:
        """How long the cookie lasts: as long as the session may at most."""
        began = self.row.began_at if self.row else timezone.now()
        return max(0, int((began + _settings().lifetime - timezone.now()).total_seconds()))

    def touch(self) -> None:
        """Note that somebody is there, unless that was noted a moment ago."""
        row, now = self.row, timezone.now()
        if row is None or row.user_id is None or now - row.seen_at < NOTE_EVERY:
            return
        Session.objects.filter(pk=row.pk, seen_at=row.seen_at).update(**self._seen(row.began_at, now))

    def _get_session_from_db(self) -> Session | None:
        now = timezone.now()
        self.row = Session.objects.filter(pk=digest(str(self.session_key)), expire_date__gt=now).first()
        if self.row is None:
            self._session_key = None
        return self.row

    def _insert(self, data: dict[str, Any]) -> None:
        now = timezone.now()
        row = Session(pk=digest(str(self.session_key)), began_at=now, **self._columns(data), **self._seen(now, now))
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            raise CreateError from error
        self.row = row

    def _update(self, data: dict[str, Any]) -> None:
        if Session.objects.filter(pk=digest(str(self.session_key))).update(**self._columns(data)) == 0:
            raise UpdateError

    def _columns(self, data: dict[str, Any]) -> dict[str, Any]:
        return {"session_data": self.encode(data), "user_id": data.get(SESSION_KEY)}

    def _seen(self, began_at: datetime, now: datetime) -> dict[str, Any]:
        address, browser = self.came_from
        return {"seen_at": now, "expire_date": _ends_at(began_at, now), "address": address, "browser": browser[:300]}


class Sessions(SessionMiddleware):
    """Gives each request its session, and notes that it was seen."""

    def process_request(self, request: HttpRequest) -> None:
        """The session, and from where it is used."""
        super().process_request(request)
        browser = request.headers.get("User-Agent", "").replace("\0", "")
        request.session.came_from = requests.address(request), browser  # type: ignore[attr-defined]

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> Any:
        """Keep what changed. A page that updates itself is nobody's presence."""
        if request.headers.get("HX-Trigger") != POLLS and response.status_code < 500:
            request.session.touch()  # type: ignore[attr-defined]
        return super().process_response(request, response)  # type: ignore[arg-type]


def digest(key: str) -> str:
    """What the table knows of a cookie's key, which is long and random."""
    return hashlib.sha256(key.encode()).hexdigest()


def prune() -> int:
    """Forget sessions that are over; gives how many."""
    number, _ = Session.objects.expired(timezone.now()).delete()
    return int(number)


def _ends_at(began_at: datetime, seen_at: datetime) -> datetime:
    return min(began_at + _settings().lifetime, seen_at + _settings().idle)


def _settings() -> AuthSession:
    return config.current().auth.session
