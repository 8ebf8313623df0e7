"""POSTs a message to an address that users give, and never to one of our own network unless that is allowed.

The address is looked up once, and what was checked is what is connected to: a name can't lead elsewhere in between.
Redirects are not followed, and proxies of the environment are not used, for both would go around that.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from core.errors import Denied, Unreachable
from core.notifications.channels import is_public

SECONDS = 10.0
"""A receiver has so long for all of it."""
READ_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver said: its status and the beginning of the body."""

    status: int
    text: str

    @property
    def taken(self) -> bool:
        """Whether it has the message."""
        return 200 <= self.status < 300


def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> Answer:
    """Send it. Raises Denied for an address of a private network, and Unreachable when there was no answer in time."""
    return _call("POST", url, body, headers, private)


def get(url: str, *, private: bool) -> Answer:
    """Ask for an address, with the same care."""
    return _call("GET", url, None, {}, private)


def _call(method: str, url: str, body: bytes | None, headers: Mapping[str, str], private: bool) -> Answer:
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = _Connection(host, parts.port, secure=parts.scheme == "https", private=private)
    watchdog = threading.Timer(SECONDS, connection.give_up)
    watchdog.start()
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path, body, {"User-Agent": "LakeMirror", "Connection": "close", **headers})
        answer = connection.getresponse()
        return Answer(answer.status, answer.read(READ_BYTES).decode("utf-8", "replace"))
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"the certificate of {host} is not trusted: {error.verify_message}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{host} did not answer within {SECONDS:.0f} s or broke off ({_word(error)})") from None
    finally:
        watchdog.cancel()
        connection.close()


def _word(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    return str(getattr(error, "strerror", None) or type(error).__name__)


class _Connection(http.client.HTTPConnection):
    """Connects to one of the addresses of a host that may be connected to."""

    def __init__(self, host: str, port: int | None, *, secure: bool, private: bool) -> None:
        super().__init__(host, port or (443 if secure else 80), timeout=SECONDS)
        self._secure, self._private = secure, private
        self._until = time.monotonic() + SECONDS

    def connect(self) -> None:
        """As the base class, but for the choice of the address."""
        self.sock = self._plain()
        if self._secure:
            context = ssl.create_default_context()
            secured = context.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
            self.sock = secured
            self._seconds_left()
            secured.do_handshake()
        self._seconds_left()

    def _seconds_left(self) -> float:
        """Of the time for all of it, however many addresses a host has. Raises TimeoutError when it is over."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def give_up(self) -> None:
        """From another thread: whatever is waited for ends with an error."""
        sock = self.sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended by itself

    def _plain(self) -> socket.socket:
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        allowed = [one for one in found if self._private or is_public(str(one[4][0]))]
        if not allowed:
            raise Denied(
                f"{self.host} leads to {found[0][4][0]}, an address of a private network",
                hint="Give an address of the internet, or set notifications.private_addresses in the configuration",
            )
        problem: OSError | None = None
        for family, kind, protocol, _, address in allowed:
            left = self._seconds_left()
            sock = socket.socket(family, kind, protocol)
            sock.settimeout(left)
            self.sock = sock
            try:
                sock.connect(address)
                return sock
            except OSError as error:
                sock.close()
                problem = error
        raise problem or TimeoutError()
