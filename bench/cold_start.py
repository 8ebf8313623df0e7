"""How long a newcomer waits: a clean clone, nothing installed, until the page answers and a commit is promoted.

`python bench/cold_start.py` clones this checkout's last commit into an empty folder and runs its `scripts/run` with a
fresh HOME and a PATH without java. It downloads what the requirements name; nothing of it stays.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import requests
from demo import MIRROR, ROOT, Demo, running_demo

from sandbox.lakefs_http import LakeFSError

PAGE_GOAL, PROMOTED_GOAL = 60.0, 180.0
PATIENCE_SECONDS = 1800.0
FOLDERS = ("/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin")
WITHOUT = ("JAVA_HOME", "PYENV_ROOT", "VIRTUAL_ENV", "PYTHONPATH", "PYTHON", "SPARK_HOME", "SPARK_REMOTE")


def main() -> None:
    """Clones, starts, stops; prints the times."""
    parser = argparse.ArgumentParser(description="Time the first start of a clean clone.")
    parser.add_argument("--log", type=Path, metavar="FILE", help="keep what the demo prints")
    log = parser.parse_args().log
    with tempfile.TemporaryDirectory(prefix="lakemirror-cold-") as folder:
        root = Path(folder, "lakemirror")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(root)], check=True)
        with running_demo(root, env=bare_environment(Path(folder)), log=log) as demo:
            report(demo)
        print(f"on disk: {megabytes(root)} MB, of which .venv {megabytes(root / '.venv')} MB")


def bare_environment(folder: Path) -> dict[str, str]:
    """This environment with an empty HOME, no Java, and no Python but the machine's own."""
    programs, home = folder / "bin", folder / "home"
    programs.mkdir()
    home.mkdir()
    for place in map(Path, FOLDERS):
        for program in place.iterdir() if place.is_dir() else ():
            link = programs / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    kept = {name: value for name, value in os.environ.items() if name not in WITHOUT}
    return kept | {"HOME": str(home), "PATH": str(programs)}


def report(demo: Demo) -> None:
    """Print each time as it comes."""
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"a clean clone, empty HOME, PATH without java; {os.cpu_count()} cores, load {load}", flush=True)
    note(demo, "the page answers", lambda: answers(demo.page), PAGE_GOAL)
    note(demo, "a branch of the mirror was promoted", lambda: promoted(demo), PROMOTED_GOAL)
    note(demo, "everything is prepared", demo.is_prepared)
    note(demo, "the mirror has all branches", lambda: has_all(demo))
    for title, seconds in stages(demo):
        print(f"  {title:<38}{seconds:7.1f} s")


def note(demo: Demo, what: str, condition: Callable[[], bool], goal: float = 0.0) -> None:
    """Wait for something and print when it was."""
    seconds = demo.wait(condition, what, seconds=PATIENCE_SECONDS)
    verdict = f"   goal <= {goal:g} s: {'reached' if seconds <= goal else 'missed'}" if goal else ""
    print(f"{what:<40}{seconds:7.1f} s{verdict}", flush=True)


def answers(url: str) -> bool:
    """Is there a page, be it the one to sign in?"""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def promoted(demo: Demo) -> bool:
    """Does the mirror have a branch? Before its first promotion it has none, and at first it is not even there."""
    try:
        return bool(demo.destination().branches(MIRROR))
    except (requests.RequestException, LakeFSError):
        return False


def has_all(demo: Demo) -> bool:
    """Does every branch of the source exist at the mirror?"""
    return demo.source().branches("lake").keys() <= demo.destination().branches(MIRROR).keys()


def stages(demo: Demo) -> list[tuple[str, float]]:
    """When each stage that the page lists was ready, in seconds from the start."""
    found = json.loads((demo.var / "run" / "status.json").read_text())["stages"]
    began = time.time() - (time.monotonic() - demo.began)
    return [(stage["title"], stage["since"] - began) for stage in found]


def megabytes(folder: Path) -> int:
    """Of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) // 1_000_000


if __name__ == "__main__":
    main()
