"""Hands a mail to an SMTP server that users name, and never to one of our own network unless that is allowed."""

from __future__ import annotations

import smtplib
import socket
import ssl
from contextlib import suppress
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime

from adapters.sockets import Limit, connect, limit, word
from core.errors import Unreachable
from core.notifications.mail import MailServer, Security

SECONDS = 15.0
"""All of it may take so long."""
_SAID = 300


def message(server: MailServer, title: str, body: str, *, uid: str, at: datetime) -> EmailMessage:
    """A mail. `uid`: of the message, the same in each try, so that a reader of mail shows one that came twice once."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = server.sender, ", ".join(server.recipients), title
    mail["Date"], mail["Message-ID"] = format_datetime(at), f"<{uid}@{server.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"], mail["LakeMirror-Delivery"] = "auto-generated", uid
    mail.set_content(body)
    return mail


def send(server: MailServer, password: str, mail: EmailMessage, *, private: bool) -> str:
    """Hand it in; gives what the server said, with the recipients that it refuses. Raises Denied for an address of a
    private network, and Unreachable when the server took it for nobody, or not in time."""
    context = ssl.create_default_context()
    try:
        with limit(SECONDS) as until:
            smtp = _Smtp(server, context, private=private, until=until)
            try:
                return _handed_in(smtp, server, password, mail, context)
            finally:
                smtp.close()
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"the certificate of {server.host} is not trusted: {error.verify_message}") from None
    except smtplib.SMTPAuthenticationError as error:
        hint = "Check user name and password; many providers require an app password"
        raise Unreachable(f"{server.host} refuses the user name or password: {_said(error)}", hint=hint) from None
    except smtplib.SMTPNotSupportedError as error:
        raise Unreachable(
            f"{server.host} does not support this: {error}", hint="Try another kind of encryption"
        ) from None
    except smtplib.SMTPResponseException as error:
        raise Unreachable(f"{server.host} refuses the message: {_said(error)}") from None
    except smtplib.SMTPRecipientsRefused as error:
        raise Unreachable(f"{server.host} refuses {_refusals(error.recipients)}") from None
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise Unreachable(
            f"{server.host} did not answer within {SECONDS:.0f} s, or closed the connection ({word(error)})"
        ) from None


def _handed_in(smtp: _Smtp, server: MailServer, password: str, mail: EmailMessage, context: ssl.SSLContext) -> str:
    greeting = smtp.connect(server.host, server.port)
    if greeting[0] != 220:
        raise smtplib.SMTPConnectError(*greeting)
    smtp.ehlo_or_helo_if_needed()
    if server.security == Security.STARTTLS:
        smtp.starttls(context=context)
        smtp.secured()
    if server.username:
        smtp.login(server.username, password)
    refused = smtp.send_message(mail)
    with suppress(OSError, smtplib.SMTPException):
        smtp.quit()  # it has the mail, whatever it says to this
    return f"{server.host} took it" + (f", but refuses {_refusals(refused)}" if refused else "")


class _Smtp(smtplib.SMTP):
    """Connects to an address that may be connected to, within a limit of time."""

    def __init__(self, server: MailServer, context: ssl.SSLContext, *, private: bool, until: Limit) -> None:
        super().__init__(local_hostname=socket.gethostname(), timeout=SECONDS)
        self._server, self._context, self._private, self._until = server, context, private, until
        self._host = server.host  # what certificates are compared with

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """The hook of smtplib for a socket of one's own, as SMTP_SSL uses it."""
        sock = connect(host, port, private=self._private, until=self._until)
        if self._server.security == Security.TLS:
            sock = self._context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
            self._until.watch(sock)
            sock.do_handshake()
        return sock

    def secured(self) -> None:
        """The socket is another one since STARTTLS."""
        if self.sock is not None:
            self._until.watch(self.sock)


def _said(error: smtplib.SMTPResponseException) -> str:
    raw = error.smtp_error
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    return f"{error.smtp_code} {' '.join(text.split())}"[:_SAID]


def _refusals(refused: dict[str, tuple[int, bytes]]) -> str:
    parts = [f"{one}: {code} {said.decode('utf-8', 'replace')}" for one, (code, said) in refused.items()]
    return " ".join("; ".join(parts).split())[:_SAID]
