"""The column of what has labels, and how rows are found by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models
from django.db.models import Q, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.lookups import Exact

from core.labels import can_be, words


class Labelled(models.Model):
    """A row with labels."""

    labels = models.JSONField(default=dict, db_default={}, help_text="key and value, as core.labels has them")

    class Meta:
        abstract = True

    @property
    def label_words(self) -> list[str]:
        """Each as it is shown: `key=value`."""
        return words(self.labels)


def with_labels(rows: Any, wanted: Sequence[str]) -> Any:
    """Those rows that have all these labels: `key=value` exactly, or a key with any value."""
    for text in wanted:
        key, equals, value = text.partition("=")
        if not can_be(key, value):
            return rows.none()
        rows = rows.filter(Q(labels__has_key=key))
        if equals:
            rows = rows.filter(Exact(KeyTextTransform(key, "labels"), Value(value)))
    return rows
