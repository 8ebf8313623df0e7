"""The Python environment: `.venv` in the checkout, filled from the pinned requirements, stage by stage."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from launcher import PYTHON, ROOT, VENV
from launcher.console import Problem, console
from launcher.processes import Failed, inherited

Run = Callable[..., str]
_NO_INDEX = (
    "NewConnectionError",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "Connection refused",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "from versions: none",
    "Temporary failure resolving",
    "Could not resolve",
)


def need_disk(folder: Path, megabytes: int) -> None:
    """Problem unless that much is free."""
    free = shutil.disk_usage(folder).free // 1_000_000
    if free < megabytes:
        raise Problem(f"{megabytes} MB are needed on the disk of {folder}, {free} MB are free")


# --- the environment itself -------------------------------------------------------------------------------------------


def make_venv(run: Run) -> None:
    """Make `.venv` unless a working one is there."""
    if PYTHON.exists() and _works():
        return
    if VENV.exists():
        console.say("the .venv here doesn't work any more (its Python is gone or too old): making it again")
        shutil.rmtree(VENV)
    console.say(f"making .venv with Python {sys.version.split()[0]}")
    need_disk(ROOT, 300)
    fresh = VENV.with_name(".venv.new")
    shutil.rmtree(fresh, ignore_errors=True)
    create(run, fresh)
    fresh.rename(VENV)


def _works() -> bool:
    """Does the environment's Python start, new enough and with pip?"""
    check = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([PYTHON, "-c", check], capture_output=True, cwd=ROOT).returncode == 0


def create(run: Run, folder: Path) -> None:
    """An environment with pip: by ensurepip where this Python has it; Debian's has it only with python3-venv, so bring
    that or pip's wheel."""
    if not _has_ensurepip():
        apt_install(run, "python3-venv")
        importlib.invalidate_caches()
    if _has_ensurepip():
        run([sys.executable, "-m", "venv", str(folder)], inherited(), say=f"making {folder.name}")
        return
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], inherited(), say=f"making {folder.name}")
    with tempfile.TemporaryDirectory() as scratch:
        wheel = _debian_pip_wheel(run, Path(scratch))
        env = inherited(PYTHONPATH=str(wheel))
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--no-index", "--quiet", str(wheel)]
        run(command, env, say="installing pip into .venv")


def _has_ensurepip() -> bool:
    """Debian ships the venv module without what it needs to bring pip (an empty folder may be left of it)."""
    spec = importlib.util.find_spec("ensurepip")
    return spec is not None and spec.origin is not None


def privileged() -> list[str] | None:
    """How to run a command as root: [] as we are root, sudo where it asks for no password, None if not at all."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True).returncode == 0:
        return [sudo, "-n"]
    return None


def apt_install(run: Run, *packages: str) -> bool:
    """Install Debian packages where we may; False where we may not or it did not work."""
    root = privileged()
    if root is None or not shutil.which("apt-get"):
        return False
    console.say(f"installing {' '.join(packages)} with apt-get")
    env = inherited(DEBIAN_FRONTEND="noninteractive")
    install = [*root, "apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    try:
        run(install, env)
    except Failed:
        try:
            run([*root, "apt-get", "update", "-q"], env)
            run(install, env)
        except Failed as failed:
            console.say(str(failed))
            return False
    return True


def _debian_pip_wheel(run: Run, scratch: Path) -> Path:
    """pip's wheel out of Debian's package python3-pip-whl, which needs no root to download and unpack."""
    hint = "this Python has no ensurepip: run 'apt-get install python3-venv' as root, then try again"
    installed = sorted(Path("/usr/share/python-wheels").glob("pip-*.whl"))
    if installed:
        return installed[-1]
    if not shutil.which("apt-get"):
        raise Problem(hint)
    options = [
        "-o",
        f"Dir::State::lists={scratch}/lists",
        "-o",
        f"Dir::Cache={scratch}/cache",
        "-o",
        "Debug::NoLocking=1",
    ]
    try:
        (scratch / "lists" / "partial").mkdir(parents=True)
        (scratch / "cache" / "archives" / "partial").mkdir(parents=True)
        run(["apt-get", *options, "update", "-q"], inherited())
        download = f'cd "{scratch}" && exec apt-get "$@" download python3-pip-whl'
        run(["sh", "-c", download, "sh", *options], inherited())
        package = next(scratch.glob("python3-pip-whl_*.deb"))
        run(["dpkg-deb", "-x", str(package), str(scratch / "unpacked")], inherited())
        return next((scratch / "unpacked").rglob("pip-*.whl"))
    except (Failed, StopIteration):
        raise Problem(hint) from None


# --- the requirements -------------------------------------------------------------------------------------------------


def _lock(stage: str) -> Path:
    return ROOT / "requirements" / f"{stage}.txt"


def _stamp(stage: str) -> Path:
    return VENV / f".installed-{stage}"


def _wanted(stage: str) -> str:
    """What the stamp of an installed stage says: the lock's digest and where the environment lies."""
    return hashlib.sha256(_lock(stage).read_bytes() + str(VENV).encode()).hexdigest()


def installed(stage: str) -> bool:
    """Are exactly this stage's pins in the environment?"""
    stamp = _stamp(stage)
    return stamp.exists() and stamp.read_text() == _wanted(stage)


def install(run: Run, stage: str, *, megabytes: int) -> None:
    """Install a stage's pins, hashes checked; nothing when its stamp says that they are in."""
    if installed(stage):
        return
    need_disk(VENV, megabytes)
    options = ["--no-deps", "--require-hashes", "--no-build-isolation", "--no-input", "--retries", "2"]
    command = [str(PYTHON), "-m", "pip", "install", *options, "--disable-pip-version-check", "-r", str(_lock(stage))]
    try:
        run(command, inherited(), seconds=1800)
    except Failed as failed:
        raise Problem(why(failed.output, stage)) from None
    _stamp(stage).write_text(_wanted(stage))


def install_missing(run: Run, stages: dict[str, int]) -> None:
    """Install those of the stages that are not there; each with the megabytes that it needs."""
    for stage, megabytes in stages.items():
        if not installed(stage):
            console.say(f"installing requirements/{stage}.txt")
            install(run, stage, megabytes=megabytes)


def why(output: str, stage: str) -> str:
    """pip's many lines as one."""
    if "No space left on device" in output:
        return f"no space left on the disk while installing requirements/{stage}.txt"
    if any(sign in output for sign in _NO_INDEX):
        return f"can't reach the package index to install requirements/{stage}.txt: is the network up?"
    errors = [line for line in output.splitlines() if "error" in line.lower()]
    return f"installing requirements/{stage}.txt failed: {errors[-1].strip() if errors else 'pip said nothing'}"
