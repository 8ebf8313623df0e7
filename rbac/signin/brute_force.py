"""Slowing down whoever guesses passwords or secrets, without giving them a way to keep others out.

Attempts are counted for a name, or the id of an access key, *from one place*. A place is the browser, if it has signed
in as that name before (it keeps a signed cookie that says so), else the network address. So a stranger's failures
never count against the owner at their own browser, nor against anybody at another address. After some free attempts
each one begins a pause, twice as long as the one before, up to a minute; an attempt in a pause is refused without
looking at the password.

Counts live in the database, so they hold for all web processes. A right secret writes nothing.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
import unicodedata
from datetime import datetime, timedelta
from typing import Any

from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from rbac.models import NAME_PATTERN, Guesses
from web import requests

FREE_ATTEMPTS = 5
FIRST_WAIT = 1
LONGEST_WAIT = 60
FORGET_AFTER = timedelta(minutes=15)
MOST = 1_000_000
COOKIE = "lakemirror_known"
_COOKIE_AGE = 180 * 24 * 3600
_SALT = "rbac.guessing"  # never renamed: cookies of now would count for nothing


def place(request: HttpRequest, username: str) -> str:
    """The place of this attempt: a browser that is known for the name, else the address (IPv6: its /64)."""
    name = _name(username)
    known = _known_browser(request, name)
    return _place("name", name, f"browser:{known}" if known else _origin(request))


def place_of_key(request: HttpRequest, key_id: str) -> str:
    """The place of an attempt at an access key: its address."""
    return _place("key", key_id, _origin(request))


def _place(kind: str, name: str, origin: str) -> str:
    """The name of the row that counts what comes from there."""
    return hashlib.sha256(f"{kind}|{name}|{origin}".encode("utf-8", "surrogatepass")).hexdigest()


def begin_attempt(where: str) -> int:
    """The seconds that an attempt has to wait, 0 when its password may be looked at; it counts from that moment on.

    Past the free attempts each one takes a turn that lasts the pause: of many at once only one gets it.
    """
    while True:
        now = timezone.now()
        seen = _counted(where, now)
        if wait := _rest(seen, now):
            return wait
        if Guesses.objects.move(seen, **_one_more(seen, now)):
            return 0


def wait_of(where: str) -> int:
    """The seconds that attempts from there have to wait now; counts nothing."""
    now = timezone.now()
    seen = Guesses.objects.filter(pk=where, forget_at__gt=now).first()
    return _rest(seen, now) if seen else 0


def failed(where: str) -> None:
    """Count an attempt that was looked at and wrong."""
    begin_attempt(where)


def succeeded(where: str) -> None:
    """Forget the failures of a place: it knew the password."""
    Guesses.objects.filter(pk=where).delete()


def prune() -> int:
    """Drop the counts of places that nothing came from for a while; gives how many."""
    number, _ = Guesses.objects.filter(forget_at__lte=timezone.now()).delete()
    return int(number)


def _counted(where: str, now: datetime) -> Guesses:
    """The row of a place, made if need be, begun anew if it is old."""
    seen: Guesses
    seen, _ = Guesses.objects.get_or_create(pk=where, defaults=_none_yet(now))
    if seen.forget_at <= now:
        Guesses.objects.filter(pk=seen.pk, forget_at=seen.forget_at).update(**_none_yet(now))
        seen.attempts, seen.wait_until = 0, None
    return seen


def _none_yet(now: datetime) -> dict[str, Any]:
    return {"attempts": 0, "wait_until": None, "forget_at": now + FORGET_AFTER}


def _one_more(seen: Guesses, now: datetime) -> dict[str, Any]:
    """A place's row with this attempt: past the free ones it begins a pause."""
    attempts = seen.attempts + 1
    extra = attempts - FREE_ATTEMPTS
    pause = min(LONGEST_WAIT, FIRST_WAIT * 2 ** max(0, min(extra, 6)))
    wait_until = now + timedelta(seconds=pause) if extra >= 0 else None
    return {"attempts": min(attempts, MOST), "wait_until": wait_until, "forget_at": now + FORGET_AFTER}


def _rest(seen: Guesses, now: datetime) -> int:
    return max(0, math.ceil((seen.wait_until - now).total_seconds())) if seen.wait_until else 0


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


def _origin(request: HttpRequest) -> str:
    return f"address:{requests.network(requests.address(request))}"
