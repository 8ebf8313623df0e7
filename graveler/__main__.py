"""`python -m graveler`: look into lakeFS's metadata files on a disk."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from graveler.dump import diff_lines, dump_lines
from graveler.errors import FormatError
from graveler.verify import Finding, check_commits, check_file, files_under, repositories_under


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; 0 if all is well, 1 if something is wrong with a file."""
    parsed = _parser().parse_args(arguments)
    _speak_utf8()
    try:
        return _run(parsed)
    except BrokenPipeError:
        # Whoever read our lines has seen enough; keep the interpreter from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except FormatError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
    return 1


def _speak_utf8() -> None:
    """Paths may hold any character, and file names any byte, whatever the terminal's locale."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _run(parsed: argparse.Namespace) -> int:
    if parsed.command == "verify":
        return verify(parsed.paths)
    return show(dump_lines(parsed.file) if parsed.command == "dump" else diff_lines(parsed.a, parsed.b))


def verify(paths: list[Path]) -> int:
    """Says which files and commits are wrong, and how many are right."""
    files = [_told(check_file(path)) for path in files_under(paths)]
    commits = [_told(finding) for path in repositories_under(paths) for finding in check_commits(path)]
    if not files:
        raise FormatError(str(paths[0]), 0, "files that are named by ids")
    print(_summary("file", files))
    if commits:
        print(_summary("commit", commits))
    return 1 if any(finding.problem for finding in files + commits) else 0


def show(lines: Iterator[str]) -> int:
    """Prints lines."""
    for line in lines:
        print(line)
    sys.stdout.flush()
    return 0


def _told(finding: Finding) -> Finding:
    if finding.problem:
        print(f"wrong: {finding.problem}")
    elif finding.unnamed:
        print(f"{finding.name}: whole, of id {finding.unnamed}, which is not its name")
    return finding


def _summary(what: str, findings: list[Finding]) -> str:
    wrong = sum(bool(finding.problem) for finding in findings)
    unnamed = sum(bool(finding.unnamed) for finding in findings)
    text = f"{len(findings)} {what}{'s' if len(findings) != 1 else ''}, {len(findings) - wrong - unnamed} right"
    text += f", {wrong} wrong" if wrong else ""
    return text + (f", {unnamed} not named by an id" if unnamed else "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m graveler", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("verify", help="recompute ids of files, and of commits in repository.json")
    checking.add_argument("paths", nargs="+", type=Path, metavar="DIR|FILE")
    dumping = commands.add_parser("dump", help="print a range or metarange as JSON lines")
    dumping.add_argument("file", type=Path)
    diffing = commands.add_parser("diff", help="print what changed from A to B (two ranges or two metaranges)")
    diffing.add_argument("a", type=Path)
    diffing.add_argument("b", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
