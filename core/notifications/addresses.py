"""Addresses that messages may be sent to: what is private, and what of an address may be shown. Pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, unquote, urlsplit

PRIVATE_HINT = "Use a public address, or set notifications.private_addresses in the configuration"
HERE = frozenset(
    {"blink1", "dbus", "file", "gio", "glib", "gnome", "kde", "macosx", "qt", "syslog", "windows"},
)
"""Schemes of Apprise that reach this machine itself, and nobody else."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,63})://")


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet: not private, loopback, link-local, reserved or multicast, also not
    as an IPv6 address that stands for such an IPv4 one. Raises ValueError for what is no address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.is_site_local:
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def is_private_literal(host: str) -> bool:
    """Whether a host is one of a private network by what is written; a name may turn out to be one later."""
    try:
        return not is_public(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def split_url(url: str) -> SplitResult | None:
    """The parts of an address; None for what is none."""
    if re.search(r"[^!-~]", url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def scheme_of(url: str) -> str:
    """The scheme of an Apprise URL, in lower case; "" for what is no URL."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def origin_of(url: str) -> str:
    """What may be shown of a webhook's address: scheme and host."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:300]


def secret_parts(url: str) -> list[str]:
    """All of an address that may be a secret: itself, what follows the scheme, and each piece of it but IP addresses,
    also as it is after decoding."""
    rest = url.partition("://")[2]
    pieces = {url, rest, rest.partition("/")[2], *re.split(r"[/:@?&=,#]", rest)}
    return [piece for piece in {*pieces, *map(unquote, pieces)} if piece and not _is_address(piece)]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
