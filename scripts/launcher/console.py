"""One readable stream: what the launcher says and what its processes say, each line with its time and its source."""

from __future__ import annotations

import json
import os
import sys
import threading
import time

_COLOURS = (36, 32, 33, 35, 34, 96, 92, 95)
_WIDTH = 12


class Problem(Exception):
    """Why it can't go on: one line for the person at the terminal."""


class Console:
    """Writes whole lines, one at a time, from any thread. Colours only on a terminal (NO_COLOR is honoured)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sources: list[str] = []
        self.as_json = False
        self.coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def line(self, source: str, text: str) -> None:
        """A line of a process. Where the log is JSON, a line that already is an object stays as it is."""
        if self.as_json:
            self._write(text if text.startswith("{") else json.dumps({"process": source, "message": text}))
        else:
            self._write(f"{time.strftime('%H:%M:%S')} {self._tag(source)} {text}")

    def say(self, text: str) -> None:
        """A line of the launcher's own."""
        self.line("lakemirror", text)

    def fail(self, text: str) -> None:
        """The last word before a non-zero exit."""
        with self._lock:
            print(f"lakemirror: {text}", file=sys.stderr, flush=True)

    def _tag(self, source: str) -> str:
        if source not in self._sources:
            self._sources.append(source)
        colour = _COLOURS[self._sources.index(source) % len(_COLOURS)]
        tag = f"{source:<{_WIDTH}}|"
        return f"\x1b[{colour}m{tag}\x1b[0m" if self.coloured else tag

    def _write(self, text: str) -> None:
        """A reader of our output that is gone (`| head`) must not keep us from stopping everything."""
        with self._lock:
            try:
                print(text, flush=True)
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


console = Console()
