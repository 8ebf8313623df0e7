"""What pip-audit knows of the pinned packages: `./scripts/audit`, run by the tools' own Python.

pip-audit ends with 0 and "No known vulnerabilities found" where a service did not know a single package of those it was
asked about, as it does behind a mirror of an index that has no advisories. Here that is an error: nothing was audited.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAGES = ("web", "build", "spark", "cli", "sandbox", "test", "tools")
CLEAN, FOUND, NOT_ASKED = 0, 1, 2
"""Exit statuses."""


@dataclass(frozen=True)
class Answer:
    """What is to be said, and the exit status."""

    status: int
    lines: tuple[str, ...]


def read(output: str, errors: str) -> Answer:
    """pip-audit's JSON as an answer; what it printed to stderr tells why where there is none."""
    try:
        asked: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except (ValueError, KeyError):
        return Answer(NOT_ASKED, (f"the advisories could not be asked: {_why(errors)}", "nothing was audited"))
    if not asked:
        return Answer(NOT_ASKED, ("nothing was audited: pip-audit found no packages in requirements/",))
    found = [_line(one, weakness) for one in asked for weakness in one.get("vulns", [])]
    skipped = [str(one["name"]) for one in asked if "skip_reason" in one]
    unasked = _unasked(skipped, len(asked))
    if found:
        return Answer(FOUND, (*found, *unasked))
    if unasked:
        return Answer(NOT_ASKED, unasked)
    return Answer(CLEAN, (f"{len(asked)} packages, none with a known weakness",))


def _unasked(skipped: list[str], asked: int) -> tuple[str, ...]:
    """That nothing is known of these, neither good nor bad; no line where there are none."""
    if not skipped:
        return ()
    hint = "another service may know more: ./scripts/audit -s osv"
    if len(skipped) == asked:
        return (f"nothing was audited: the service that was asked has advisories for none of {asked} packages", hint)
    return (f"not audited, for the service that was asked does not know them: {', '.join(skipped)}", hint)


def _line(package: dict[str, Any], weakness: dict[str, Any]) -> str:
    names = ", ".join([str(weakness["id"]), *map(str, weakness.get("aliases", []))])
    mended = ", ".join(map(str, weakness.get("fix_versions", []))) or "no version yet"
    return f"{package['name']} {package['version']}: {names}; mended in {mended}"


def _why(errors: str) -> str:
    """The last line that is not empty: of a traceback that is what was raised."""
    said = [line.strip() for line in errors.splitlines() if line.strip()]
    return said[-1] if said else "pip-audit said nothing"


def main(arguments: list[str]) -> int:
    """Ask of every stage of requirements/; `arguments` go to pip-audit. The exit status."""
    folder = Path(__file__).resolve().parent.parent.parent / "requirements"
    files = [word for stage in STAGES for word in ("-r", str(folder / f"{stage}.txt"))]
    shown = ["--format", "json", "--desc", "off", "--progress-spinner", "off"]
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", *files, *shown, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    answer = read(done.stdout, done.stderr)
    for line in answer.lines:
        print(line, file=sys.stdout if answer.status == CLEAN else sys.stderr)
    return answer.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
