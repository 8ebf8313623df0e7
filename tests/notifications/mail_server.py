"""A real mail server on loopback, which keeps what it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import Message
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USER, PASSWORD = "lakemirror", "a password of mail"


class MailServer:
    """`taken`: mails, in order; `refuses`: recipients that it does not take; `answers`: replies to the next mails, then
    it takes them."""

    def __init__(self) -> None:
        self.taken: list[Message] = []
        self.refuses: set[str] = set()
        self.answers: list[str] = []

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address in self.refuses:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.answers:
            return self.answers.pop(0)
        self.taken.append(message_from_bytes(envelope.content, policy=default))
        return "250 OK"


class _Controller(Controller):
    """At whatever port is free."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


def _signs_in(server: Any, session: Any, envelope: Any, mechanism: str, auth: Any) -> AuthResult:
    right = isinstance(auth, LoginPassword) and (auth.login, auth.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)


@contextmanager
def mail_server(**options: Any) -> Iterator[tuple[MailServer, int]]:
    """The server and its port. `options`: of aiosmtpd's SMTP, like tls_context."""
    made = MailServer()
    controller = _Controller(made, hostname="127.0.0.1", port=0, authenticator=_signs_in, **options)
    controller.start()
    try:
        yield made, controller.port
    finally:
        controller.stop()


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate of localhost that nobody trusts yet, and its key: two files."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "localhost.pem", folder / "localhost.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, secret
