"""`python -m sandbox up`: starts everything as one process tree and ends it with this process."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core.installations.webhook_action import FILLED_IN, SECRET_VARIABLE
from sandbox import processes, real_lakefs
from sandbox.company import Company
from sandbox.control import Worker, make_control
from sandbox.httpd import bind, serve
from sandbox.lakefs_http import LakeFS
from sandbox.lakemirror_yaml import write_configuration
from sandbox.layout import (
    CONTROL,
    LAKEFS,
    REGION_NAMES,
    S3,
    SECOND_REPOSITORY,
    STATE_FILE,
    Layout,
    Region,
    port_base,
)
from sandbox.region import Serving, run_region
from sandbox.replication import Replicator, Timing, pairs_of


class CantStart(Exception):
    """One line for the user."""


@dataclass(frozen=True, slots=True)
class Options:
    """What `up` is told."""

    folder: Path
    regions: int = len(REGION_NAMES)
    seed: int = 1
    company: bool = True
    history: bool = True
    interval: float = 4.0
    delay: float = 0.0
    free_ports: bool = False
    hook_url: str = ""
    hook_secret: str = ""
    lakefs: str = ""
    extra_buckets: tuple[str, ...] = ()
    name_lag: float = 0.0
    denied: tuple[str, ...] = ()
    unreplicated: frozenset[str] = frozenset()
    """FROM:TO, names of regions."""


def up(options: Options) -> None:
    """Runs until SIGTERM or SIGINT. Raises CantStart when something is in the way."""
    stopping = threading.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):  # only noted: an exception could surface anywhere and be lost
        signal.signal(sign, lambda *_: stopping.set())
    options.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as undo:
        _run(options, undo, stopping)


def _run(options: Options, undo: ExitStack, stopping: threading.Event) -> None:
    began = time.monotonic()
    if options.hook_secret:
        os.environ[SECRET_VARIABLE] = options.hook_secret  # of each lakeFS, which fills it into action files
    sockets = _sockets(options)
    layout = _layout(sockets, bool(options.lakefs))
    children = _start_regions(options, sockets, layout, undo)
    timing = Timing(delay=options.delay)
    replicator = Replicator(layout.regions, timing=timing, seed=options.seed, unreplicated=options.unreplicated)
    replicator.start()
    workers = _workers(options, layout)
    serve(sockets[0], make_control(layout, replicator, workers))
    write_configuration(options.folder, layout, hook_secret=options.hook_secret)
    layout.save(options.folder)  # last: who finds this file finds everything
    undo.callback((options.folder / STATE_FILE).unlink, missing_ok=True)
    kind = "real lakeFS" if options.lakefs else "stand-in"
    print(f"sandbox ready in {time.monotonic() - began:.1f} s ({kind}): {_describe(layout)}", flush=True)
    if options.company:
        for worker in workers:
            threading.Thread(target=worker.run, args=(options.interval,), name="company", daemon=True).start()
    _watch(children, stopping)


def _describe(layout: Layout) -> str:
    regions = (f"{region.name}: lakeFS {region.lakefs_url} S3 {region.s3_url}" for region in layout.regions)
    return f"control {layout.control_url}; " + "; ".join(regions)


def _sockets(options: Options) -> list[socket.socket]:
    """Control, then lakeFS and S3 of each region."""
    pairs = list(zip(LAKEFS, S3, strict=True))[: options.regions]
    numbers = [CONTROL, *(port for pair in pairs for port in pair)]
    ports = [0 if options.free_ports else port_base() + number for number in numbers]
    bound = []
    for port in ports:
        try:
            bound.append(bind(port))
        except OSError as error:
            raise CantStart(f"port {port} can't be used on 127.0.0.1: {error.strerror}") from error
    return bound


def _layout(sockets: Sequence[socket.socket], real: bool) -> Layout:
    control, *others = (listener.getsockname()[1] for listener in sockets)
    ports = list(zip(others[::2], others[1::2], strict=True))
    regions = tuple(Region(name, *pair) for name, pair in zip(REGION_NAMES, ports, strict=False))
    return Layout(f"http://127.0.0.1:{control}", regions, real)


def _start_regions(options: Options, sockets: list[socket.socket], layout: Layout, undo: ExitStack) -> list[int]:
    """The regions' processes, and the real servers behind them. Nothing else runs in this process yet."""
    real_sockets = [bind(0) for _ in layout.regions] if options.lakefs else []
    real_ports = [listener.getsockname()[1] for listener in real_sockets]
    for listener in real_sockets:
        listener.close()
    urls = [f"http://127.0.0.1:{port}" for port in real_ports] or [""] * len(layout.regions)
    pids: list[int] = []
    undo.callback(lambda: processes.end(pids))
    for number, (region, url) in enumerate(zip(layout.regions, urls, strict=True)):
        lakefs, s3 = sockets[1 + 2 * number], sockets[2 + 2 * number]
        peers = tuple(b for a, b in pairs_of(layout.regions, options.unreplicated) if a == region)
        told = (options.extra_buckets, options.name_lag, peers, options.denied)
        serving = Serving(region, lakefs, s3, url, *told)
        pids.append(_fork_region(serving, sockets))
    servers: list[subprocess.Popen[bytes]] = []
    for region, port in zip(layout.regions, real_ports, strict=False):
        server = real_lakefs.start_lakefs(options.lakefs, options.folder / f"lakefs-{region.name}", region, port)
        pids.append(server.pid)
        servers.append(server)
    for region, url, server in zip(layout.regions, urls, servers, strict=False):
        real_lakefs.wait_until_alive(server, url, options.folder / f"lakefs-{region.name}" / "lakefs.log")
    return pids


def _fork_region(serving: Serving, sockets: Sequence[socket.socket]) -> int:
    ready_read, ready_write = os.pipe()
    pid = processes.fork(partial(_region_process, serving, ready_write, sockets))
    os.close(ready_write)
    answered = os.read(ready_read, 1)
    os.close(ready_read)
    if not answered:
        raise CantStart(f"the region {serving.region.name} did not start: see its lines above")
    serving.lakefs.close()
    serving.s3.close()
    return pid


def _region_process(serving: Serving, ready: int, sockets: Sequence[socket.socket]) -> None:
    for listener in sockets:
        if listener not in (serving.lakefs, serving.s3) and listener.fileno() >= 0:
            listener.close()
    run_region(serving, ready)


def _workers(options: Options, layout: Layout) -> list[Worker]:
    """Who works where: on `lake` in the first region; on `orders`, smaller and at half the pace, in the second."""
    first, second = layout.regions[:2]
    lake = Company(lambda: LakeFS(first.lakefs_url), seed=options.seed)
    orders = Company(lambda: LakeFS(second.lakefs_url), SECOND_REPOSITORY, seed=options.seed + 1, days=6, commits=6)
    if options.history:
        _found(lake, first, options)
        _found(orders, second, options)
    paused = threading.Event()
    return [Worker(lake, paused), Worker(orders, paused, pace=2.0)]


def _found(company: Company, region: Region, options: Options) -> None:
    hook_url = f"{options.hook_url.rstrip('/')}/{region.name}" if options.hook_url else ""
    namespace = f"s3://{region.bucket}/{company.repository}"
    company.found(namespace, hook_url=hook_url, hook_secret=FILLED_IN if options.hook_secret else "")


def _watch(children: Sequence[int], stopping: threading.Event) -> None:
    """Returns when told to stop; when a child ends, so does the sandbox."""
    while all(processes.running(pid) for pid in children):
        if stopping.wait(0.5):
            logging.disable()  # what the threads find out now is no news
            return
    print("a process of the sandbox ended: the sandbox stops", file=sys.stderr, flush=True)
    raise SystemExit(1)
