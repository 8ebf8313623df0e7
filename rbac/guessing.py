"""Slowing down whoever guesses passwords, without giving them a way to keep others out.

Attempts are counted for a name *from one place*. A place is the browser, if it has signed in as that name before (it
keeps a signed cookie that says so), else the network address. So a stranger's failures never count against the owner
at their own browser, nor against anybody at another address. After some free attempts each one begins a pause, twice
as long as the one before, up to a minute; an attempt in a pause is refused without looking at the password.

Counts live in Django's cache: by default each web process has its own, which multiplies the free attempts by the
number of processes.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import re
import time
import unicodedata
from dataclasses import dataclass

from django.core import signing
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

from rbac import requests
from rbac.models import NAME_PATTERN

FREE_ATTEMPTS = 5
FIRST_WAIT = 1
LONGEST_WAIT = 60
FORGET_AFTER = 15 * 60
COOKIE = "lakemirror_known"
_COOKIE_AGE = 180 * 24 * 3600
_SALT = "rbac.guessing"


@dataclass(frozen=True, slots=True)
class Place:
    """Where attempts at a name come from; `key` names the count in the cache."""

    key: str

    @property
    def turn(self) -> str:
        """Where the end of the running pause is kept."""
        return f"{self.key}:turn"


def place(request: HttpRequest, username: str) -> Place:
    """The place of this attempt: a browser that is known for the name, else the address (IPv6: its /64)."""
    name = _name(username)
    known = _known_browser(request, name)
    origin = f"browser:{known}" if known else f"address:{network(requests.address(request))}"
    digest = hashlib.sha256(f"{name}|{origin}".encode()).hexdigest()
    return Place(f"signin:{digest}")


def begin_attempt(where: Place) -> int:
    """The seconds that an attempt has to wait, 0 when its password may be looked at; it counts from that moment on.

    Past the free attempts each one takes a turn that lasts the pause: of many at once only one gets it.
    """
    wait = _rest_of_turn(where)
    if wait:
        return wait
    cache.add(where.key, 0, FORGET_AFTER)
    extra = cache.incr(where.key) - FREE_ATTEMPTS
    pause = min(LONGEST_WAIT, FIRST_WAIT * 2 ** max(0, min(extra, 6)))
    if extra < 0 or cache.add(where.turn, time.time() + pause, pause):
        return 0
    return _rest_of_turn(where) or 1


def _rest_of_turn(where: Place) -> int:
    return max(0, math.ceil(cache.get(where.turn, 0) - time.time()))


def succeeded(where: Place) -> None:
    """Forget the failures of a place: it knew the password."""
    cache.delete_many([where.key, where.turn])


def remember_browser(response: HttpResponse, request: HttpRequest, username: str) -> None:
    """Let this browser be known as one that has signed in as the name."""
    nonce = signing.get_cookie_signer(salt=_SALT).sign(f"{_name(username)}:{time.time_ns()}")
    response.set_cookie(COOKIE, nonce, max_age=_COOKIE_AGE, secure=request.is_secure(), httponly=True, samesite="Lax")


def _name(typed: str) -> str:
    """The user that what was typed may mean, read as the form does; one count for all that can mean nobody."""
    name = unicodedata.normalize("NFKC", typed).strip().lower()
    return name if re.match(NAME_PATTERN, name) else ""


def _known_browser(request: HttpRequest, name: str) -> str:
    """The signed mark of a browser that knew the name's password once, or ""."""
    try:
        mark = signing.get_cookie_signer(salt=_SALT).unsign(request.COOKIES.get(COOKIE, ""))
    except signing.BadSignature:
        return ""
    return mark if name and mark.rpartition(":")[0] == name else ""


def network(address: str | None) -> str:
    """Where an address belongs to one and the same somebody: itself, of IPv6 its /64; "local" for none."""
    if address is None or ":" not in address:
        return address or "local"
    return str(ipaddress.ip_network(f"{address}/64", strict=False))
