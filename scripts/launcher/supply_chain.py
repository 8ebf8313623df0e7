"""`scripts/licences`, `scripts/sbom` and `scripts/audit`: what others wrote, its licences and its known weaknesses.

The last two run by tools that LakeMirror itself does not need: they have an environment of their own in var/tools.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from launcher import PYTHON, ROOT, VAR, VENV, environment
from launcher.console import Problem, console
from launcher.processes import Failed, Supervisor, inherited

_LOCK = ROOT / "requirements" / "tools.txt"
_IMAGE = {"web": 400, "build": 50, "spark": 1500, "cli": 100}
"""The stages that the image has, and the megabytes that each needs."""
_ALL = _IMAGE | {"sandbox": 100, "test": 600}


def licences(arguments: list[str]) -> int:
    """`scripts/licences [--write]`: the licence of every package; 1 where one may not be there."""
    if arguments not in ([], ["--write"]):
        raise Problem("scripts/licences takes nothing, or --write to write docs/third-party.md")
    _environment(_ALL)
    code = "import sys; from supply.licences import main; sys.exit(main(sys.argv[1:]))"
    return _run([PYTHON, "-c", code, *arguments])


def sbom(arguments: list[str]) -> int:
    """`scripts/sbom [FILE]`: what the image installs, as CycloneDX; var/sbom.cdx.json unless told."""
    if len(arguments) > 1 or any(word.startswith("-") for word in arguments):
        raise Problem("scripts/sbom takes the file to write, or nothing for var/sbom.cdx.json")
    file = Path(arguments[0]).absolute() if arguments else VAR / "sbom.cdx.json"
    VAR.mkdir(parents=True, exist_ok=True)
    if not file.parent.is_dir():
        raise Problem(f"there is no folder {file.parent}")
    _environment(_IMAGE)
    return _run([_tools(), "-m", "supply.bom", _site_packages(), file])


def audit(arguments: list[str]) -> int:
    """`scripts/audit [ARGUMENTS OF PIP-AUDIT]`: 0 nothing known, 1 something found, 2 advisories could not be had."""
    return _run([_tools(), "-m", "supply.advisories", *arguments])


def _environment(stages: dict[str, int]) -> None:
    run = Supervisor().once
    environment.make_venv(run)
    environment.install_missing(run, stages)


def _site_packages() -> Path:
    return Path(sysconfig.get_path("purelib", "venv", vars={"base": str(VENV)}))


def _tools() -> Path:
    """The tools' Python, with exactly what requirements/tools.txt pins."""
    folder, run = VAR / "tools", Supervisor().once
    VAR.mkdir(parents=True, exist_ok=True)
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = hashlib.sha256(_LOCK.read_bytes() + str(folder).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    console.say(f"installing requirements/tools.txt into {folder}")
    environment.need_disk(VAR, 200)
    shutil.rmtree(folder, ignore_errors=True)
    environment.create(run, folder)
    options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    try:
        run([str(python), "-m", "pip", "install", *options, "-r", str(_LOCK)], inherited(), seconds=900)
    except Failed as failed:
        raise Problem(environment.why(failed.output, "tools")) from None
    stamp.write_text(wanted)
    return python


def _run(command: Sequence[str | Path]) -> int:
    """A program with our packages, its output straight through."""
    path = os.pathsep.join([str(ROOT / "scripts"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run([str(word) for word in command], cwd=ROOT, env=inherited(PYTHONPATH=path)).returncode
