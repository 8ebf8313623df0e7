"""What is checked of single fields of the configuration: each check gives "" or what is wrong with the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from urllib.parse import urlsplit


def named(value: str) -> str:
    """A region's name."""
    return (
        "" if re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", value) else f"{value!r} is not a region name (a-z, 0-9, -)"
    )


def filled(value: str) -> str:
    """Anything but blanks."""
    return "" if value.strip() else "is required and must not be empty"


def url(value: str) -> str:
    """An address with its scheme."""
    parts = urlsplit(value)
    good = parts.scheme in ("http", "https") and parts.hostname
    return "" if good else f"{value!r} is not a URL (http://host:port or https://host)"


def url_or_empty(value: str) -> str:
    """An address with its scheme, or none."""
    return url(value) if value else ""


def secret_url_or_empty(value: str) -> str:
    """An address that is not shown, or none."""
    return "this is not a URL (http://host:port/path or https://host/path)" if value and url(value) else ""


def s3_or_empty(value: str) -> str:
    """An address in a store, or none."""
    good = not value or re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/.*)?", value)
    return "" if good else f"{value!r} is not an address of S3 (s3://bucket or s3://bucket/folder)"


def price_or_empty(value: str) -> str:
    """An amount of money, or none."""
    good = not value or re.fullmatch(r"\d{1,9}(\.\d{1,12})?", value)
    return "" if good else f"{value!r} is not a price (a number like 0.005)"


def urls(value: Mapping[str, str]) -> str:
    """An address by region."""
    return next((f"{region}: {text}" for region, given in value.items() if (text := named(region) or url(given))), "")


def hosts(value: tuple[str, ...]) -> str:
    """Names of hosts, without scheme, port or path."""
    odd = [one for one in value if not re.fullmatch(r"\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*|\[[0-9a-f:]+\]", one)]
    return f"{odd[0]!r} is not a host name (lakemirror.example.com, .example.com)" if odd else ""


def positive(value: int) -> str:
    """A number above 0."""
    return "" if value > 0 else f"must be more than 0, not {value}"


def not_negative(value: int) -> str:
    """0 or more."""
    return "" if value >= 0 else "must not be negative"


def page(value: int) -> str:
    """How many entries lakeFS gives at a time."""
    return "" if 0 < value <= 1000 else f"must be from 1 to 1000 (lakeFS gives no longer page), not {value}"


def lasting(value: timedelta) -> str:
    """A time that is not 0."""
    return "" if value > timedelta(0) else "must be longer than 0s"


def one_of(*choices: str, any_case: bool = False) -> Callable[[str], str]:
    """The check that a value is among these; with `any_case` in capitals or not."""

    def check(value: str) -> str:
        known = (value.upper() if any_case else value) in choices
        return "" if known else f"{value!r} is not one of {', '.join(choices)}"

    return check


def scope(value: str) -> str:
    """What a provider of OpenID is asked for."""
    return "" if "openid" in value.split() else f"{value!r} lacks 'openid'"


def authenticators(value: tuple[str, ...]) -> str:
    """Who is asked for a key, each once."""
    wrong = next((name for name in value if name not in ("keys", "api", "lakefs")), None)
    if wrong is not None:
        return f"{wrong!r} is not one of keys, api, lakefs"
    return "names one of them twice" if len(set(value)) < len(value) else ""


def address(value: str) -> str:
    """Where to listen."""
    _host, colon, port = value.rpartition(":")
    good = colon and port.isdigit() and 0 < int(port) < 65536
    return "" if good else f"{value!r} is not host:port"
