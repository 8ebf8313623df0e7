"""Installations of the database become part of this process's configuration, and stay so as they change.

Read at the beginning of a request, a round of a duty and a tick, at most every `settings.INSTALLATIONS_SECONDS`: what
somebody adds or changes holds everywhere some seconds later; one request or round sees one configuration
(`config.snapshot`), whatever another thread reads meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponseBase

from core.errors import Unreadable
from core.installations.settings import Secrets
from core.store_access import StoreAccess
from deployment import config
from deployment.config import LakeFSKeys, LakeFSServer, Secret, Store
from deployment.config_sections import StoreCredentials
from deployment.overlay import Added, Together, together
from installations.models import Installation

log = logging.getLogger("installations.refresh")

_read_at = -1e9
_last_read: list[tuple[int, int, str]] | None = None


class UpToDate:
    """Middleware: a request sees the installations of now, and the same ones to its end."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path not in settings.ANSWERED_WITHOUT_DATABASE:
            refresh()
        with config.snapshot():
            return self.get_response(request)


def refresh() -> None:
    """Read them again if that was some time ago. A database that does not answer leaves things as they are."""
    if time.monotonic() - _read_at < settings.INSTALLATIONS_SECONDS:
        return
    try:
        read()
    except DatabaseError as error:
        log.warning("installations can't be read now: %s", type(error).__name__)


def read() -> None:
    """Read them now."""
    global _read_at, _last_read
    _read_at = time.monotonic()
    rows = list(Installation.objects.all())
    current = [(row.pk, row.version, row.sealed) for row in rows]
    if current != _last_read:
        put(rows)
        _last_read = current


def put(rows: Iterable[Installation]) -> None:
    """Let the configuration be that of the file and these."""
    own = config.from_file()
    doubled = [row.region for row in rows if row.region in own.regions]
    if doubled:
        log.warning("the configuration file has its own installation %s: that counts", ", ".join(doubled))
    config.put_together(together(own, [added(row) for row in rows]))


def with_candidate(row: Installation, secrets: Secrets) -> config.Config:
    """The configuration of now, and an installation that nobody has saved yet, in place of one of its name."""
    known = config.current()
    added_ones = known.added.items() if isinstance(known, Together) else ()
    others = [one for region, one in added_ones if region != row.region]
    return together(config.from_file(), [*others, Added(_installation(row, secrets), row.served_by)])


def added(row: Installation) -> Added:
    """A row as the configuration has it. One that can't be opened is there, and says why it can't be used."""
    try:
        return Added(_installation(row, row.secrets()), row.served_by)
    except Unreadable as error:
        log.error("%s", error)
        return Added(_installation(row, Secrets()), row.served_by, error.message, error.hint)


def _installation(row: Installation, secrets: Secrets) -> config.Installation:
    keys = StoreCredentials(row.store_access_key_id, Secret(secrets.store))
    lakefs = LakeFSServer(row.lakefs_endpoint, LakeFSKeys(row.lakefs_access_key_id, Secret(secrets.lakefs)))
    return config.Installation(
        row.region,
        Store(row.store_region or row.region, row.store_endpoint, row.store_path_style, keys),
        lakefs if row.lakefs_endpoint else None,
        StoreAccess(
            profile=row.store_profile,
            role_arn=row.store_role_arn,
            role_external_id=row.store_role_external_id,
            sts_endpoint=row.sts_endpoint,
            ca_bundle=row.ca_bundle,
            proxy=row.proxy,
        ),
    )
