"""Every secret that this process was told, so that lines which people read can be without them."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from core.redaction import without_known
from deployment import config
from deployment.reader import Secret

_cached: tuple[config.Config | None, list[str]] = (None, [])


def hidden(text: str) -> str:
    """A text without them; as it is while there is no configuration yet."""
    with contextlib.suppress(config.ConfigError):
        return without_known(text, known_secrets())
    return text


def known_secrets() -> list[str]:
    """Those of the configuration of now, installations of the database included."""
    global _cached
    now = config.current()
    if _cached[0] is not now:
        _cached = now, list(dict.fromkeys(secrets_of(now)))
    return _cached[1]


def secrets_of(settings: config.Config) -> Iterator[str]:
    """Every secret of a configuration, what follows from one, and keys as they are sent to lakeFS."""
    yield from _in(settings)
    for region in settings.regions:
        yield settings.hook_secret(region).reveal()
        if (lakefs := settings.lakefs(region)) and lakefs.keys.secret_access_key:
            pair = f"{lakefs.keys.access_key_id}:{lakefs.keys.secret_access_key.reveal()}"
            yield base64.b64encode(pair.encode()).decode()
    yield settings.derived_key("executors")
    yield settings.derived_key("installations")
    yield settings.derived_key("notifications")


def _in(value: Any) -> Iterator[str]:
    if isinstance(value, Secret):
        yield value.reveal()
    elif is_dataclass(value):
        for field in fields(value):
            yield from _in(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _in(inner)
