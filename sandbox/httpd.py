"""A threaded WSGI server on a socket that is already bound, with keep-alive (werkzeug's own always closes)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from io import RawIOBase
from typing import Any, cast
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import BaseWSGIServer, DechunkedInput, make_server

IDLE_SECONDS = 300
LARGEST_UNREAD_BODY = 16 << 20


class Dropped(ConnectionAbortedError):
    """An application raises this to close the connection without an answer."""


def bind(port: int, host: str = "127.0.0.1") -> socket.socket:
    """A listening socket; port 0 picks a free one. Raises OSError when the port is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    listener.listen(256)
    return listener


def serve(listener: socket.socket, app: WSGIApplication) -> BaseWSGIServer:
    """Serves `app` from a daemon thread and returns at once."""
    host, port = listener.getsockname()
    server = make_server(host, port, app, threaded=True, request_handler=KeepAliveHandler, fd=listener.fileno())
    threading.Thread(target=server.serve_forever, name=f"http-{port}", daemon=True).start()
    return server


class LimitedInput(RawIOBase):
    """A request's body: exactly `length` bytes of the connection."""

    def __init__(self, stream: Any, length: int) -> None:
        self._stream = stream
        self.left = length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self.left))
        self.left -= len(data)
        buffer[: len(data)] = data
        return len(data)


class KeepAliveHandler(MotoRequestHandler):
    """Answers requests one after the other on a connection; what an application left unread is read off."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = IDLE_SECONDS

    def log_request(self, *_: Any, **__: Any) -> None:
        """Nothing: the servers are chatty and the demo's log is for people."""

    def log_error(self, format: str, *args: Any) -> None:
        """Everything but that a client left a connection idle."""
        if not any(isinstance(arg, TimeoutError) for arg in args):
            super().log_error(format, *args)

    def run_wsgi(self) -> None:
        """One request. Replaces werkzeug's, which always ends with `Connection: close`."""
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wfile.flush()
        environ = self.make_environ()
        body = self._body(environ)
        environ["wsgi.input"] = body
        self.environ = environ
        try:
            Answer(self, environ).send(self.server.app)
            self._read_off(body)
        except OSError:  # Dropped on purpose, or the client went away.
            self.close_connection = True

    def _body(self, environ: WSGIEnvironment) -> Any:
        if environ.get("wsgi.input_terminated"):
            if not isinstance(environ["wsgi.input"], DechunkedInput):
                raise TypeError("expected a chunked body")
            return environ["wsgi.input"]
        return LimitedInput(self.rfile, int(environ.get("CONTENT_LENGTH") or 0))

    def _read_off(self, body: Any) -> None:
        if isinstance(body, DechunkedInput) or body.left > LARGEST_UNREAD_BODY:
            self.close_connection = True
            return
        while body.left and body.read(1 << 16):
            pass


class Answer:
    """One WSGI answer on its way to the client."""

    def __init__(self, handler: KeepAliveHandler, environ: WSGIEnvironment) -> None:
        self._handler = handler
        self._environ = environ
        self._status = ""
        self._headers: list[tuple[str, str]] = []
        self._chunked = False
        self._begun = False

    def send(self, app: WSGIApplication) -> None:
        """Calls the application and writes what it gives."""
        parts: Iterable[bytes] = app(self._environ, cast(StartResponse, self._start))
        try:
            for part in parts:
                self._write(part)
            if not self._begun:
                self._begin(0)
            if self._chunked:
                self._handler.wfile.write(b"0\r\n\r\n")
            self._handler.wfile.flush()
        finally:
            close = getattr(parts, "close", None)
            if close:
                close()

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
        self._status, self._headers = status, headers
        return self._write

    def _write(self, part: bytes) -> None:
        if not self._begun:
            self._begin(None)
        if self._chunked and part:
            self._handler.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        elif part:
            self._handler.wfile.write(part)

    def _begin(self, length: int | None) -> None:
        self._begun = True
        code, _, reason = self._status.partition(" ")
        names = {name.lower() for name, _ in self._headers}
        self._handler.send_response(int(code), reason)
        for name, value in self._headers:
            self._handler.send_header(name, value)
        bodiless = self._environ["REQUEST_METHOD"] == "HEAD" or int(code) in (204, 304)
        if "content-length" not in names and not bodiless:
            self._chunked = length is None
            self._handler.send_header(*(("Transfer-Encoding", "chunked") if self._chunked else ("Content-Length", "0")))
        if self._handler.close_connection:
            self._handler.send_header("Connection", "close")
        self._handler.end_headers()
