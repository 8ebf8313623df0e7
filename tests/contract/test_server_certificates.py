"""The certificate of a real TLS server is read, straight and through a proxy, and trusted as the SDKs trust it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.server_certificates import read_certificate
from core.errors import Invalid, Unreachable
from tests.notifications.mail_server import self_signed


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of localhost, signed by itself: its file, and that of its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def port(bundle: tuple[Path, Path]) -> Iterator[int]:
    """Of a server that speaks TLS, alone or after a CONNECT, which it takes from olga only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*bundle)
    with socket.create_server(("localhost", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening, context), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def serve(listening: socket.socket, context: ssl.SSLContext) -> None:
    with suppress(OSError):
        while True:
            sock, _ = listening.accept()
            with sock, suppress(OSError):
                if sock.recv(1, socket.MSG_PEEK) == b"C":
                    asked = sock.recv(4096)
                    allowed = asked.startswith(b"CONNECT localhost:8443 ") and b"Basic b2xnYTpwYXNz" in asked
                    sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" if allowed else b"HTTP/1.1 407 Who are you\r\n\r\n")
                with context.wrap_socket(sock, server_side=True) as secured:
                    secured.recv(1)


def test_it_says_from_when_and_until_when_it_is_valid(port: int, bundle: tuple[Path, Path]) -> None:
    ours = str(bundle[0])
    seen = read_certificate(f"https://localhost:{port}/api", ca_bundle=ours)
    assert seen and timedelta(hours=47) < seen.valid_until - seen.valid_from < timedelta(hours=49)
    assert abs(datetime.now(UTC) + timedelta(days=1) - seen.valid_until) < timedelta(minutes=5)
    proxy = f"http://olga:pass@localhost:{port}"
    assert read_certificate("https://localhost:8443", ca_bundle=ours, proxy=proxy) == seen
    with pytest.raises(Unreachable, match="could not be read"):
        read_certificate("https://localhost:8443", ca_bundle=ours, proxy=f"http://localhost:{port}")


def test_one_that_is_not_trusted_or_not_there_is_told_so(port: int, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="the certificate of localhost is not trusted"):
        read_certificate(f"https://localhost:{port}")
    with pytest.raises(Invalid, match="there is no file"):
        read_certificate(f"https://localhost:{port}", ca_bundle=str(tmp_path / "absent"))
    with pytest.raises(Unreachable, match="could not be read"):
        read_certificate("https://localhost:1")
    assert read_certificate(f"http://localhost:{port}") is None
