"""The way between LakeMirror and a region's store: `python -m tests.rule_fleet.gate PORT STORE_PORT LOG SEED`.

It notes each request, with when it came and was answered, as a line of JSON, and does what it is told by lines on
standard input: `open`; `refuse` (nobody gets through, and what is under way is cut); `deaf` (requests arrive, and
nobody hears the answers); `flaky` (some are cut in the middle). It ends when its input does.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from urllib.parse import unquote

from tests.rule_fleet import SOAK_ID

PIECE = 1 << 16
MODES = ("open", "refuse", "deaf", "flaky")
CUT_SHARE = 0.15
BODILESS = (204, 304)
CONTINUE = 100


class Cut(Exception):
    """Both connections end."""


class Head(NamedTuple):
    """The first line and the headers of a request or an answer, and the bytes that it came as."""

    first: str
    headers: dict[str, str]
    raw: bytes

    @property
    def status(self) -> int:
        return int(self.first.split(" ", 2)[1])


class Gate:
    """All connections to one store."""

    def __init__(self, store_port: int, log: TextIO, seed: int) -> None:
        self._port, self._log, self._random = store_port, log, random.Random(seed)
        self._mode = "open"
        self._tasks = set[asyncio.Task[None]]()

    def turn(self, mode: str) -> None:
        """From now on."""
        if mode not in MODES:
            raise ValueError(mode)
        self._mode = mode
        if mode == "refuse":
            for task in self._tasks:
                task.cancel()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, and one to the store."""
        if self._mode == "refuse":
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        store: asyncio.StreamWriter | None = None
        try:
            back, store = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
            while await self._exchange(reader, writer, back, store):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, Cut):
            pass
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            for one in (writer, store):
                if one is not None:
                    one.transport.abort()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamReader,
        store: asyncio.StreamWriter,
    ) -> bool:
        """One request and its answer; whether another may follow."""
        asked = await _next(reader, back)
        note = _noted(asked)
        try:
            mode = self._mode
            cuts = mode == "flaky" and self._random.random() < CUT_SHARE
            if cuts and self._random.random() < 0.5:
                await self._cut_in_the_middle(asked, reader, store)
            answer = await self._asked(asked, reader, writer, back, store)
            note["status"], note["t1"] = answer.status, time.time()
            if mode == "deaf" or cuts:
                raise Cut
            await _send(writer, answer.raw)
            if asked.first.split(" ")[0] != "HEAD" and answer.status not in BODILESS:
                await _body(answer, back, writer, until_closed=True)
            note["heard"] = True
            return "close" not in (answer.headers.get("connection", ""), asked.headers.get("connection", ""))
        finally:
            self._log.write(json.dumps(note | {"t1": note["t1"] or time.time()}) + "\n")
            self._log.flush()

    async def _cut_in_the_middle(self, asked: Head, reader: asyncio.StreamReader, store: asyncio.StreamWriter) -> None:
        length = int(asked.headers.get("content-length", 0))
        await _send(store, asked.raw)
        if length > 1:
            await _send(store, await reader.readexactly(min(length // 2, PIECE)))
        raise Cut

    async def _asked(
        self,
        asked: Head,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamReader,
        store: asyncio.StreamWriter,
    ) -> Head:
        """Hand a request on; gives the head of the answer."""
        await _send(store, asked.raw)
        if asked.headers.get("expect", "").lower() == "100-continue":
            answer = await _head(back)
            if answer.status != CONTINUE:
                return answer
            await _send(writer, answer.raw)
        await _body(asked, reader, store)
        answer = await _head(back)
        while answer.status == CONTINUE:
            answer = await _head(back)
        return answer


def _noted(asked: Head) -> dict[str, Any]:
    method, target, _ = asked.first.split(" ", 2)
    path, _, query = target.partition("?")
    told = {"t0": time.time(), "t1": 0.0, "method": method, "path": unquote(path), "query": query}
    told |= {"status": 0, "heard": False}
    told["id"] = asked.headers.get(SOAK_ID, "")
    told["from"] = unquote(asked.headers.get("x-amz-copy-source", ""))
    return told


async def _next(reader: asyncio.StreamReader, back: asyncio.StreamReader) -> Head:
    """The next request. Raises Cut where the store closes a connection that rests, so that the client hears of it."""
    asked, closed = asyncio.ensure_future(_head(reader)), asyncio.ensure_future(back.read(1))
    try:
        await asyncio.wait((asked, closed), return_when=asyncio.FIRST_COMPLETED)
        if closed.done():
            raise Cut
        return await asked
    finally:
        for one in (asked, closed):
            one.cancel()
        await asyncio.gather(asked, closed, return_exceptions=True)


async def _head(reader: asyncio.StreamReader) -> Head:
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Head(first, {name.strip().lower(): value.strip() for name, _, value in pairs}, raw)


async def _body(
    head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, until_closed: bool = False
) -> None:
    if "chunked" in head.headers.get("transfer-encoding", "").lower():
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            await _send(writer, line + await reader.readexactly(size + 2))
            if not size:
                return
    left = int(head.headers.get("content-length", -1 if until_closed else 0))
    while left:
        piece = await reader.read(PIECE if left < 0 else min(PIECE, left))
        if not piece:
            raise Cut
        await _send(writer, piece)
        left -= len(piece) if left > 0 else 0


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def main(port: int, store_port: int, log: Path, seed: int) -> None:
    """Serve until the input ends."""
    with log.open("a") as lines:
        gate = Gate(store_port, lines, seed)
        server = await asyncio.start_server(gate.serve, "127.0.0.1", port, limit=1 << 20, backlog=256)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            gate.turn(line.strip())
        server.close()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])))
