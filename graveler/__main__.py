"""`python -m graveler`: look into lakeFS's metadata files on a disk."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from graveler.certify import files_in, take_account
from graveler.dump import diff_lines, dump_lines
from graveler.errors import FormatError
from graveler.verify import Finding, check_commits, check_file, files_under, read_commit, repositories_under


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
    if parsed.command == "certify":
        return certify(parsed.folder, parsed.commit, parsed.metarange)
    return show(dump_lines(parsed.file) if parsed.command == "dump" else diff_lines(parsed.a, parsed.b))


def verify(paths: list[Path]) -> int:
    """Says which files and commits are wrong, and how many are right."""
    files = [_reported(check_file(path)) for path in files_under(paths)]
    commits = [_reported(finding) for path in repositories_under(paths) for finding in check_commits(path)]
    if not files:
        raise FormatError(str(paths[0]), 0, "files that are named by ids")
    print(_summary("file", files))
    if commits:
        print(_summary("commit", commits))
    return 1 if any(finding.problem for finding in files + commits) else 0


def certify(folder: Path, commit: str, metarange: str | None) -> int:
    """Says what a commit holds and the digest of that, or which of its files are wrong.

    Without a metarange `commit` is a file with the record, whose id is recomputed too.
    """
    if metarange is None:
        record = read_commit(Path(commit))
        account = take_account(record["id"], record["meta_range_id"], files_in(folder))
    else:
        account = take_account(commit, metarange, files_in(folder))
    for problem in account.problems:
        print(f"wrong: {problem}")
    if account.content is None:
        return 1
    print(json.dumps({**account.content.facts(), "content_digest": account.content.digest()}, indent=1))
    if metarange is not None:
        print("the commit's id was taken as given; its record, in a file, would prove it", file=sys.stderr)
    return 0


def show(lines: Iterator[str]) -> int:
    """Prints lines."""
    for line in lines:
        print(line)
    sys.stdout.flush()
    return 0


def _reported(finding: Finding) -> Finding:
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
    certifying = commands.add_parser("certify", help="recompute what a commit holds, and the digest of its certificate")
    certifying.add_argument("folder", type=Path, metavar="DIR", help="a copy of the storage namespace, or its _lakefs")
    certifying.add_argument(
        "commit", metavar="RECORD|COMMIT", help="a file with the commit's record, or the commit's id"
    )
    certifying.add_argument("metarange", nargs="?", help="the metarange's id, where the commit is given by its own")
    diffing = commands.add_parser("diff", help="print what changed from A to B (two ranges or two metaranges)")
    diffing.add_argument("a", type=Path)
    diffing.add_argument("b", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
