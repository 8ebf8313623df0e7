"""A channel as somebody wants it: where messages go, without what is secret; what is wrong with it. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

from core.errors import Invalid
from core.notifications.rules import Rule

LONGEST_URL, LONGEST_SECRET, SHORTEST_SECRET = 2000, 200, 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class ChannelKind(StrEnum):
    """How messages are sent."""

    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class ChannelWish:
    """All that is no secret, with what is told by it."""

    name: str
    kind: str = ChannelKind.WEBHOOK.value
    enabled: bool = True
    rule: Rule = Rule()


@dataclass(frozen=True, slots=True)
class ChannelSecrets:
    """What is sealed: the address, which often has a token in its path, and what messages are signed with. "" in a
    change: it stays as it is."""

    url: str = ""
    signing_secret: str = ""

    def __repr__(self) -> str:
        return "ChannelSecrets(***)"


def check_channel(wish: ChannelWish, secrets: ChannelSecrets, *, new: bool, private: bool) -> None:
    """Raise Invalid for the first thing that can't be so. `private`: whether addresses of private networks may be."""
    for field, problem, hint in _problems(wish, secrets, new, private):
        raise Invalid(problem, field=field, hint=hint)


def target_of(url: str) -> str:
    """What may be shown of an address: scheme and host."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:300]


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


def _problems(wish: ChannelWish, secrets: ChannelSecrets, new: bool, private: bool) -> Iterator[tuple[str, str, str]]:
    if not _NAME.fullmatch(wish.name) or wish.name == "new":
        yield "name", f"'{wish.name[:80]}' is no name of a channel", "Use letters, digits, _ . and -, but not 'new'"
    if wish.kind not in {*ChannelKind}:
        yield "kind", f"'{wish.kind[:40]}' is not one of {', '.join(ChannelKind)}", ""
    field, problem = wish.rule.problem()
    if field:
        yield field, problem, ""
    if new and not secrets.url:
        yield "url", "the address is missing", "Write https://host/path, as the receiver says it"
    if secrets.url:
        yield from _bad_url(secrets.url, private)
    yield from _bad_secret(secrets.signing_secret, new)


def _bad_secret(secret: str, new: bool) -> Iterator[tuple[str, str, str]]:
    if new and not secret:
        hint = "Type one that only the receiver knows too: it checks with it that messages are ours"
        yield "signing_secret", "the signing secret is missing", hint
    elif secret and (re.search(r"[^!-~]", secret) or not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET):
        problem = f"must be {SHORTEST_SECRET} to {LONGEST_SECRET} letters, digits and signs of ASCII without blanks"
        yield "signing_secret", problem, ""


def _bad_url(url: str, private: bool) -> Iterator[tuple[str, str, str]]:
    parts = _split(url)
    if parts is None or len(url) > LONGEST_URL or parts.scheme not in ("http", "https") or not parts.hostname:
        yield "url", "this is no address of a webhook", "Write https://host/path, as the receiver says it"
    elif parts.username is not None or parts.fragment:
        yield "url", "the address must hold no name, password or #", "Leave it away"
    elif not private and _is_private_literal(parts.hostname):
        hint = "Give an address of the internet, or set notifications.private_addresses in the configuration"
        yield "url", f"{parts.hostname} is an address of a private network", hint


def _split(url: str) -> SplitResult | None:
    if re.search(r"[^!-~]", url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_private_literal(host: str) -> bool:
    try:
        return not is_public(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
