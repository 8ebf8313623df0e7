"""Verify the record of who did what, and seal what is old."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from audit import chain, db_triggers, search
from audit import seal as sealing
from audit import verify as verifying
from audit.management.base import ACTOR, PlainCommand
from audit.verify import ChainPosition, Found
from core.errors import Invalid


class Command(PlainCommand):
    help = "Verify the audit chain or a file of sealed events; seal old events. See docs/audit.md."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, parser_class=ArgumentParser)
        verify = verbs.add_parser("verify", help="exit with 1 and name the first event that is wrong or missing")
        verify.add_argument("file", nargs="?", type=Path, help="a file of sealed events, in place of the database")
        verify.add_argument(
            "--head", default="", help="NUMBER:DIGEST as printed by an earlier run, which must still match"
        )
        seal = verbs.add_parser("seal", help="move old events into a file")
        seal.add_argument("--before", required=True, help="events older than this: 2026-01-31, or a time in UTC")
        seal.add_argument("--out", required=True, type=Path, help="the file, which must not exist yet")

    def run(self, **options: Any) -> None:
        """Do the verb."""
        if options["verb"] == "seal":
            return self.seal(options["before"], options["out"])
        noted = _place(options["head"])
        return self.verify_file(options["file"], noted) if options["file"] else self.verify(noted)

    def verify(self, noted: ChainPosition | None) -> None:
        """The chain in the database."""
        chain.append_waiting()
        result = verifying.verify(noted)
        verifying.note(result)
        self.tell(result)
        start = verifying.start_of_chain()
        if start.number:
            self.stdout.write(f"events up to {start.number} are sealed")
        if not db_triggers.is_installed():
            self.stdout.write("note: the database does not refuse changes itself; run manage.py migrate")

    def verify_file(self, path: Path, noted: ChainPosition | None) -> None:
        """A sealed file: by itself, and against the checkpoint."""
        result, header = sealing.verify_file(path, noted)
        if not result.wrong:
            result = Found(result.place, sealing.against_checkpoint(path, header))
        self.tell(result)

    def tell(self, result: Found) -> None:
        """The result; ends the command with 1 if something is wrong."""
        if result.wrong:
            self.stderr.write(f"broken: {result.wrong}")
            self.stderr.write(f"whole up to {result.place}")
            sys.exit(1)
        self.stdout.write(f"verified up to event {result.place.number}")
        self.stdout.write(f"head {result.place}")

    def seal(self, before: str, out: Path) -> None:
        """Move events into a file."""
        point = sealing.seal(before=search.time_of(before, "before"), out=out.absolute(), actor=ACTOR)
        if point is None:
            self.stdout.write(f"no event of the chain is older than {before}")
            return
        self.stdout.write(f"events {point.first} to {point.number} are in {point.file}")
        self.stdout.write(f"head {ChainPosition(point.number, point.digest)}")
        self.stdout.write(f"sha256 {point.file_digest}")


def _place(given: str) -> ChainPosition | None:
    if not given:
        return None
    match = re.fullmatch(r"(\d{1,18}):([0-9a-f]{64})", given)
    if not match:
        raise Invalid(f"'{given[:100]}' is not valid: use NUMBER:DIGEST as audit verify printed it", field="head")
    return ChainPosition(int(match[1]), match[2])
