"""Mail is handed in to a real server, encrypted where it should be, and never to one of our network."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters import mail
from core.errors import Denied, Unreachable
from core.notifications.mail import MailServer
from tests.notifications.mail_server import PASSWORD, USER, mail_server, self_signed
from tests.notifications.mail_server import MailServer as Real

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def there() -> Iterator[tuple[Real, int]]:
    with mail_server() as made:
        yield made


def wanted(port: int, **more: object) -> MailServer:
    people = {"sender": "lm@example.com", "recipients": ["a@example.com", "b@example.com"]}
    return MailServer.of({"host": "127.0.0.1", "port": port, "security": "none", **people, **more})


def send(server: MailServer, password: str = "", *, private: bool = True) -> str:
    written = mail.message(server, "It broke · ü", "Line\nand ü", uid="an-id", at=AT)
    return mail.send(server, password, written, private=private)


def test_a_mail_arrives_whole(there: tuple[Real, int]) -> None:
    real, port = there
    assert send(wanted(port)) == "127.0.0.1 took it"
    [one] = real.taken
    assert one["Subject"] == "It broke · ü" and one["To"] == "a@example.com, b@example.com"
    assert one["Message-ID"] == "<an-id@example.com>" and one["LakeMirror-Delivery"] == "an-id"
    assert one.get_content().splitlines() == ["Line", "and ü"]  # type: ignore[attr-defined]


def test_a_server_of_our_network_is_refused(there: tuple[Real, int]) -> None:
    real, port = there
    with pytest.raises(Denied, match=r"127\.0\.0\.1, an address of a private network"):
        send(wanted(port), private=False)
    assert not real.taken


def test_who_is_refused_is_told_of(there: tuple[Real, int]) -> None:
    real, port = there
    real.refuses = {"b@example.com"}
    assert send(wanted(port)) == "127.0.0.1 took it, but refuses b@example.com: 550 no such user"
    real.refuses = {"a@example.com", "b@example.com"}
    with pytest.raises(Unreachable, match=r"refuses a@example\.com: 550 no such user; b@"):
        send(wanted(port))
    assert len(real.taken) == 1


def test_what_is_not_taken_comes_with_the_words_of_the_server(there: tuple[Real, int]) -> None:
    real, port = there
    real.answers = ["452 the disk is full"]
    with pytest.raises(Unreachable, match="refuses the message: 452 the disk is full"):
        send(wanted(port))


def test_encryption_that_is_not_there_is_not_done_without(there: tuple[Real, int]) -> None:
    real, port = there
    with pytest.raises(Unreachable, match="does not support this"):
        send(wanted(port, security="starttls"))
    with pytest.raises(Unreachable):
        send(wanted(port, security="tls"))
    assert not real.taken


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(Unreachable, match="did not answer within"):
        send(wanted(silent.getsockname()[1]))


def test_a_password_goes_over_tls_to_a_server_that_is_trusted(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with mail_server(tls_context=context, require_starttls=True) as (real, port):
        secure = wanted(port, host="localhost", security="starttls", username=USER)
        with pytest.raises(Unreachable, match="the certificate of localhost is not trusted"):
            send(secure, PASSWORD)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        with pytest.raises(Unreachable, match="refuses the user name or password"):
            send(secure, "another")
        assert not real.taken
        send(secure, PASSWORD)
        assert len(real.taken) == 1


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of localhost, signed by itself: its file, and that of its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))
