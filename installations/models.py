"""Installations that were added while LakeMirror ran, with their secrets sealed, and what their last tests found."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import lru_cache

from django.db import models

from adapters.sealing import OtherKey, Sealer, Tampered
from core.errors import Unreadable
from core.installations.server_certificates import ServerCertificate
from core.installations.settings import Secrets, Wish
from db.fields import ExactJSONField, ExactTextField
from deployment import config

OLD_KEY = "LAKEMIRROR_OLD_SECRET_KEY"
"""The variable that holds the auth.encrypt.secret_key of before, while secrets are sealed anew."""


class Installation(models.Model):
    """One region's store, and its lakeFS if it has one, as `core.installations.settings.Wish` names its settings."""

    region = models.CharField(max_length=64, unique=True)
    served_by = models.CharField(max_length=64, help_text="the region of the deployment that works for it")
    lakefs_endpoint = models.CharField(max_length=1000, blank=True, help_text="empty: a store alone")
    lakefs_access_key_id = models.CharField(max_length=1000, blank=True)
    store_endpoint = models.CharField(max_length=1000, blank=True)
    store_region = models.CharField(max_length=1000, blank=True)
    store_path_style = models.BooleanField(default=False)
    store_access = models.CharField(max_length=16)
    store_access_key_id = models.CharField(max_length=1000, blank=True)
    store_profile = models.CharField(max_length=1000, blank=True)
    store_role_arn = models.CharField(max_length=1000, blank=True)
    store_role_external_id = models.CharField(max_length=1000, blank=True)
    sts_endpoint = models.CharField(max_length=1000, blank=True)
    ca_bundle = models.CharField(max_length=1000, blank=True)
    proxy = models.CharField(max_length=1000, blank=True)
    sealed = models.TextField(help_text="the secrets, and with them all of the above")
    version = models.BigIntegerField(default=1, help_text="counts changes")
    changed_at = models.DateTimeField()

    class Meta:
        db_table = "mirrors_installation"
        ordering = ["region"]

    def __str__(self) -> str:
        return self.region

    @property
    def wish(self) -> Wish:
        """Its settings."""
        return Wish(**{each.name: getattr(self, each.name) for each in fields(Wish)})

    def put(self, wish: Wish, secrets: Secrets) -> None:
        """Take settings and secrets; nothing is saved."""
        for name, value in asdict(wish).items():
            setattr(self, name, value)
        self.sealed = sealers()[0].seal(json.dumps([secrets.lakefs, secrets.store]), wish.about())

    def secrets(self) -> Secrets:
        """Its secrets, opened with the key of now or the one before. Raises Unreadable."""
        for sealer in sealers():
            try:
                return Secrets(*json.loads(sealer.open(self.sealed, self.wish.about())))
            except OtherKey:
                continue
            except Tampered:
                raise Unreadable(
                    f"the row of the installation '{self.region}' was not changed by LakeMirror, so "
                    "its secrets are not used",
                    hint="Find out who writes to the database, then edit the installation and enter its secrets again",
                ) from None
        raise Unreadable(
            f"the secrets of the installation '{self.region}' were sealed with another auth.encrypt.secret_key",
            hint=f"Give the old key as {OLD_KEY} and run manage.py rotate_secrets, or enter the secrets again",
        )

    @property
    def is_of_now(self) -> bool:
        """Whether the key of now opens it, without that of before."""
        return self.sealed.split(".")[1:2] == [sealers()[0].key_id]


def sealers(purpose: str = "installations") -> list[Sealer]:
    """That of auth.encrypt.secret_key, then that of the key before, if it is told; for one purpose."""
    return [_sealer(key) for key in _keys(purpose)]


def _keys(purpose: str) -> Iterator[str]:
    yield config.from_file().derived_key(purpose)
    if old := os.environ.get(OLD_KEY):
        yield config.derived(old, purpose)


@lru_cache(maxsize=8)
def _sealer(key: str) -> Sealer:
    return Sealer(key)


class InstallationTest(models.Model):
    """What the last test of an installation found, be it of the database or of the file."""

    region = models.CharField(max_length=64, unique=True)
    tested_at = models.DateTimeField()
    reachable = models.BooleanField(help_text="lakeFS answered; where there is none, the store did")
    lakefs_version = models.CharField(max_length=100, blank=True)
    checks = ExactJSONField(default=list, help_text="id, state, message, fix of each")

    class Meta:
        db_table = "mirrors_installationtest"

    def __str__(self) -> str:
        return f"{self.region} at {self.tested_at}"


class Contact(models.Model):
    """Whether a region's lakeFS, or its store, answers: as it was when it was asked last."""

    region = models.CharField(max_length=64)
    service = models.CharField(max_length=16, help_text="lakefs or store")
    asked_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    failing_since = models.DateTimeField(null=True)
    kind = models.CharField(max_length=16, blank=True, help_text="what is wrong, by core.installations.outages")
    problem = ExactTextField(blank=True)
    certificate_from = models.DateTimeField(null=True)
    certificate_until = models.DateTimeField(null=True, help_text="of its TLS certificate; null: none was seen")
    certificate_read_at = models.DateTimeField(null=True, help_text="when it was last to be read")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["region", "service"], name="contact_once")]

    def __str__(self) -> str:
        return f"{self.service} of {self.region}"

    @property
    def certificate(self) -> ServerCertificate | None:
        """Its TLS certificate, as it was last seen."""
        if self.certificate_from is None or self.certificate_until is None:
            return None
        return ServerCertificate(self.certificate_from, self.certificate_until)
