"""What a request tells about itself: where it came from, and the id by which its traces are found again."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

REALM = 'Basic realm="LakeMirror", charset="UTF-8"'
"""How programs are to say who they are, for WWW-Authenticate."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[Any] = ContextVar("request", default=None)


class CurrentRequest:
    """Middleware: what is written down while a request is answered knows which one that is."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with answering(request):
            return self.get_response(request)


@contextmanager
def answering(request: Any) -> Iterator[None]:
    """`current()` is this request meanwhile, in this thread."""
    token = _current.set(request)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Any:
    """The request that is being answered; None in a worker or command."""
    return _current.get()


def request_id(request: Any) -> str:
    """The caller's X-Request-ID if it is a plain one, else an id made up once for the request; "" without a request."""
    if request is None:
        return ""
    request = plain(request)
    if not hasattr(request, "request_id"):
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        request.request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
    return str(request.request_id)


def address(request: Any) -> str | None:
    """The caller's IP address. Forwarding headers count only when one of settings.TRUSTED_PROXIES sent them."""
    if request is None:
        return None
    meta = plain(request).META
    ip = _ip(meta.get("REMOTE_ADDR", ""))
    for hop in reversed(meta.get("HTTP_X_FORWARDED_FOR", "").split(",")):
        if ip not in settings.TRUSTED_PROXIES:
            break
        ip = _ip(hop.strip()) or ip
    return ip


def traces() -> dict[str, str | None]:
    """`request_id` and `address` of the request that is being answered."""
    return {"request_id": request_id(current()), "address": address(current())}


def plain(request: Any) -> Any:
    """Django's own request behind DRF's."""
    return getattr(request, "_request", request)


def _ip(text: str) -> str | None:
    """An address as text, IPv4 out of its IPv6 clothes; None for what is none (a socket's path)."""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def network(address: str | None) -> str:
    """Where an address belongs to one and the same somebody: itself, of IPv6 its /64; "local" for none."""
    if address is None or ":" not in address:
        return address or "local"
    return str(ipaddress.ip_network(f"{address}/64", strict=False))
