"""`manage.py rebuild --from-destination`: make the mirrors of a lost database again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from core.errors import Invalid
from deployment import config
from deployment.wiring import region_settings
from installations import refresh
from mirrors.services.rebuild import Line, Result, rebuild
from rbac.management.base import ACTOR, AccessCommand

TITLES = ("region", "mirror", "source", "branches", "proven", "result")


class Command(AccessCommand):
    help = (
        "Rebuild the mirrors in the database from descriptors, certificates and branches at their destinations. "
        "Nothing is changed there. Exits with 1 if something that may be a mirror was skipped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from-destination", action="store_true", required=True, help="the only source, so far")
        parser.add_argument("--region", help="only this destination region (else all that the deployment serves)")
        parser.add_argument("--mirror", default="", help="only the mirror of this name")
        parser.add_argument("--dry-run", action="store_true", help="check everything, write nothing")

    def run(self, **options: Any) -> None:
        """Rebuild, tell of each repository, and fail when one was left alone."""
        lines = list(
            rebuild(
                actor=ACTOR,
                regions=_regions(options["region"]),
                only=options["mirror"],
                dry_run=options["dry_run"],
            )
        )
        shown = [line for line in lines if line.result is not Result.NO_MIRROR or options["mirror"]]
        for row in _table([TITLES, *map(_cells, shown)]) if shown else ():
            self.stdout.write(row)
        self.stdout.write(_summary(lines))
        left_alone = [line.name for line in lines if line.result is Result.LEFT]
        if left_alone or (options["mirror"] and not any(line.result is not Result.NO_MIRROR for line in lines)):
            raise CommandError(f"could not be rebuilt: {', '.join(left_alone) or options['mirror']}")


def _regions(region: str | None) -> list[str]:
    refresh.refresh()
    served = list(config.current().served)
    if region and region not in served:
        raise Invalid(f"this deployment does not serve the region '{region}': it serves {', '.join(served)}")
    if region:
        region_settings.require_lakefs(region)
    return [region] if region else [one for one in served if one in region_settings.lakefs_names()]


def _cells(line: Line) -> tuple[str, ...]:
    counted = (str(line.branches), str(line.proven)) if line.source else ("", "")
    result = f"{line.result}: {line.detail}" if line.detail else str(line.result)
    return line.region, line.name, line.source, *counted, result


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _summary(lines: list[Line]) -> str:
    counts = [(result, sum(line.result is result for line in lines)) for result in Result]
    return ", ".join(f"{number} {result}" for result, number in counts if number) or "no repository there"
