"""Where mail is handed in, and what is wrong with it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from core.notifications.addresses import PRIVATE_HINT, is_private_literal

MOST_RECIPIENTS, LONGEST_ADDRESS, LONGEST_HOST = 20, 254, 253
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


class Security(StrEnum):
    """How the connection to a mail server is encrypted."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"

    @property
    def port(self) -> int:
        """The usual port."""
        return {"starttls": 587, "tls": 465, "none": 25}[self.value]

    @property
    def word(self) -> str:
        """As a person reads it."""
        return {"starttls": "STARTTLS", "tls": "TLS from the start", "none": "Not encrypted"}[self.value]


@dataclass(frozen=True, slots=True)
class MailServer:
    """All of a mail channel but the password: the SMTP server, who signs in there, from whom and to whom."""

    host: str = ""
    port: int = Security.STARTTLS.port
    security: str = Security.STARTTLS.value
    username: str = ""
    sender: str = ""
    recipients: Sequence[str] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> MailServer:
        """From its fields, as they are stored or sent; `port` follows from `security` unless it is given."""
        given = {name: value for name, value in values.items() if value is not None}
        security = given.get("security", cls().security)
        usual = Security(security).port if security in {*Security} else cls().port
        return cls(**{"port": usual} | given | {"recipients": tuple(given.get("recipients", ()))})

    @property
    def fields(self) -> dict[str, Any]:
        """As it is stored and told."""
        return asdict(self) | {"recipients": list(self.recipients)}

    @property
    def target(self) -> str:
        """Where it leads, in a few words."""
        return f"{', '.join(self.recipients)} by {self.host}:{self.port}"[:300]

    def problems(self, *, password: bool, private: bool) -> Iterator[tuple[str, str, str]]:
        """Fields that can't be so, each with why and what to do. `password`: there is one."""
        if not _HOST.fullmatch(self.host):
            yield "host", "this is not the name of a mail server", "Use a host like smtp.example.com, without a port"
        elif not private and is_private_literal(self.host):
            yield "host", f"{self.host} is an address of a private network", PRIVATE_HINT
        if not 0 < self.port < 65536:
            yield "port", f"{self.port} is not a port: it is 1 to 65535", ""
        if self.security not in {*Security}:
            yield "security", f"'{self.security[:20]}' is not one of {', '.join(Security)}", ""
        if len(self.username) > LONGEST_ADDRESS or re.search(r"[\x00-\x1f\x7f]", self.username):
            yield "username", f"a user name has at most {LONGEST_ADDRESS} characters, no control characters", ""
        yield from self._signing_in(password)
        yield from self._people()

    def _signing_in(self, password: bool) -> Iterator[tuple[str, str, str]]:
        if self.username and not password:
            yield "password", "the password is missing", "Enter the password, or remove the user name"
        if password and not self.username:
            yield "username", "the user name is missing", "Enter the user name, or remove the password"
        if self.username and self.security == Security.NONE:
            hint = "Choose STARTTLS or TLS, or remove user name and password"
            yield "security", "a password is not sent over a connection that is not encrypted", hint

    def _people(self) -> Iterator[tuple[str, str, str]]:
        if not _is_address(self.sender):
            yield "sender", f"'{self.sender[:80]}' is not a mail address", "Use one like lakemirror@example.com"
        if not 0 < len(self.recipients) <= MOST_RECIPIENTS:
            yield "recipients", f"must be 1 to {MOST_RECIPIENTS} mail addresses", ""
        for one in self.recipients:
            if not _is_address(one):
                yield "recipients", f"'{one[:80]}' is not a mail address", "Use one like on-call@example.com"


def _is_address(text: str) -> bool:
    return len(text) <= LONGEST_ADDRESS and _ADDRESS.fullmatch(text) is not None
