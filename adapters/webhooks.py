"""POSTs a message to an address that users give, and never to one of our own network unless that is allowed.

The address is looked up once, and what was checked is what is connected to: a name can't lead elsewhere in between.
Redirects are not followed, and proxies of the environment are not used, for both would go around that.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from adapters.sockets import Limit, connect, limit, word
from core.errors import Unreachable

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
    with limit(SECONDS) as until:
        connection = _Connection(host, parts.port, secure=parts.scheme == "https", private=private, until=until)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(method, path, body, {"User-Agent": "LakeMirror", "Connection": "close", **headers})
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(READ_BYTES).decode("utf-8", "replace"))
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(f"the certificate of {host} is not trusted: {error.verify_message}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(
                f"{host} did not answer within {SECONDS:.0f} s, or closed the connection ({word(error)})"
            ) from None
        finally:
            connection.close()


class _Connection(http.client.HTTPConnection):
    """Connects to one of the addresses of a host that may be connected to."""

    def __init__(self, host: str, port: int | None, *, secure: bool, private: bool, until: Limit) -> None:
        super().__init__(host, port or (443 if secure else 80), timeout=SECONDS)
        self._secure, self._private, self._until = secure, private, until

    def connect(self) -> None:
        """As the base class, but for the choice of the address."""
        self.sock = connect(self.host, self.port, private=self._private, until=self._until)
        if self._secure:
            context = ssl.create_default_context()
            secured = context.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
            self.sock = secured
            self._until.watch(secured)
            secured.do_handshake()
        self._until.check()
