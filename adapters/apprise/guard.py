"""What the process that runs Apprise may do: call addresses of the internet, read its own libraries, and nothing else.

Apprise has some 190 services, each with code of its own that follows names, redirects and options of a URL that a user
gave. Python tells an audit hook of every connection that is about to be made, by its address, and of every file that is
about to be opened, whichever library asks (https://docs.python.org/3/library/audit_events.html). The hook can't be
taken away again.
"""

from __future__ import annotations

import os
import ssl
import sys
import sysconfig
from typing import Any, NoReturn

from core.notifications.addresses import is_public

_STARTS = ("subprocess.", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.startfile", "pty.spawn")
_CHANGES = ("os.", "shutil.", "syslog.", "ctypes.dlopen", "tempfile.")
_HARMLESS = ("os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.putenv", "os.unsetenv", "os.add_dll_directory")
_ADDRESSED = ("socket.connect", "socket.sendto", "socket.sendmsg")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ALSO_READ = ("/usr/share/zoneinfo", "/etc/ssl", "/etc/pki", "/etc/mime.types", "/etc/localtime", "/dev/urandom")


class Guard:
    """`refused`: what was not allowed so far, in words."""

    def __init__(self, *, private: bool) -> None:
        self.refused: list[str] = []
        self._private = private
        self._readable = tuple({os.path.realpath(path) for path in _readable()})

    def install(self) -> None:
        """From here on, and for as long as the process lives."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _ADDRESSED:
            self._address(args[1])
        elif event == "open":
            self._file(*args)
        elif event.startswith(_STARTS):
            self._refuse("it may not start another program")
        elif event.startswith(_CHANGES) and event not in _HARMLESS:
            self._refuse("it may not change anything on this machine")

    def _address(self, address: Any) -> None:
        if address is None:
            return  # of a socket that is connected, which was asked then
        if not isinstance(address, tuple):
            self._refuse("it may not use a local socket")
        host = str(address[0])
        try:
            public = is_public(host)
        except ValueError:
            self._refuse(f"it may not connect to {host} without looking up its address first")
        if not (public or self._private):
            self._refuse(f"it may not connect to {host}, an address of a private network")

    def _file(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int):
            return
        name = os.path.realpath(os.fsdecode(path))
        writes = isinstance(flags, int) and flags & _WRITES
        if writes and name != os.devnull:
            self._refuse("it may not write to a file of this machine")
        if name != os.devnull and not any(name == one or name.startswith(f"{one}/") for one in self._readable):
            self._refuse("it may not read a file of this machine")

    def _refuse(self, why: str) -> NoReturn:
        self.refused.append(why)
        raise PermissionError(why)


def _readable() -> list[str]:
    """Where Python, its libraries and the certificates lie."""
    certificates = ssl.get_default_verify_paths()
    here = [certificates.openssl_cafile, certificates.openssl_capath, certificates.cafile, certificates.capath]
    return [
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *(path for path in here if path),
        *_ALSO_READ,
    ]
