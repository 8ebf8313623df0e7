"""A gate in front of an S3 server: it notes how the bodies of writes are signed, and refuses, cuts or alters them."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

UNSIGNED = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer in the server's place. `early`: the body is not read, and the connection closed; status 0: no answer
    at all."""

    status: int
    code: str = ""
    early: bool = False


@dataclass
class Gate:
    """What it does to writes with a Content-MD5, by their x-amz-content-sha256; all others pass.

    `refuses` gives an answer, `alters` says whether the last byte of the body changes, `tells` are headers that the
    server's answer is given in the place of its own. `seen`: the x-amz-content-sha256 of each, in their order;
    `signed_headers`: of the last.
    """

    endpoint: str = ""
    refuses: Callable[[str], Refusal | None] = lambda _: None
    alters: Callable[[str], bool] = lambda _: False
    tells: dict[str, str] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    signed_headers: list[str] = field(default_factory=list)

    @property
    def unsigned(self) -> list[bool]:
        """Of each write with a Content-MD5: went its body without a hash?"""
        return [one == UNSIGNED for one in self.seen]


def of_unsigned(refusal: Refusal) -> Callable[[str], Refusal | None]:
    """Bodies without a hash are refused so."""
    return lambda hashed: refusal if hashed == UNSIGNED else None


@contextmanager
def gate_before(backend: str) -> Iterator[Gate]:
    """A gate at an address of its own."""
    gate = Gate()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(gate, urlsplit(backend).netloc))
    server.daemon_threads = True
    gate.endpoint = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield gate
    finally:
        server.shutdown()
        server.server_close()


def _handler(gate: Gate, backend: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Quiet."""

        def _passed(self) -> None:
            hashed = self.headers.get("x-amz-content-sha256", "")
            compared = self.command == "PUT" and "content-md5" in self.headers
            if compared:
                gate.seen.append(hashed)
                signed = self.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
                gate.signed_headers = signed.split(";")
            refusal = gate.refuses(hashed) if compared else None
            if refusal is not None and refusal.early:
                return self._refused(refusal)
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if refusal is not None:
                return self._refused(refusal)
            if compared and gate.alters(hashed):
                body = body[:-1] + bytes([body[-1] ^ 1])
            self._forwarded(body, gate.tells if compared else {})

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _passed

        def _refused(self, refusal: Refusal) -> None:
            self.close_connection = refusal.early or not refusal.status
            if refusal.status:
                text = f"<Error><Code>{refusal.code}</Code><Message>refused at the gate</Message></Error>".encode()
                self.send_response(refusal.status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        def _forwarded(self, body: bytes, tells: dict[str, str]) -> None:
            connection = http.client.HTTPConnection(backend, timeout=30)
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value.encode("latin-1"))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            data, told = answer.read(), {name.lower(): value for name, value in answer.getheaders()}
            connection.close()
            self.send_response(answer.status)
            told.pop("transfer-encoding", None)
            told |= {"content-length": told["content-length"] if self.command == "HEAD" else str(len(data))} | tells
            for name, value in told.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    return Handler
