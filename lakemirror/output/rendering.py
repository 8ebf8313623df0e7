"""What answers are drawn with: lines, states in their colours, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lakemirror.output.formatting import clean

_COLOURS = {
    "red": ("Stopped", "Frozen", "Failed", "Tampered", "Damaged", "Blocked", "Late"),
    "yellow": ("Unknown", "Retrying", "Source rewound", "Not proven"),
    "blue": ("Syncing", "Validating"),
    "dim": ("Paused", "New", "Not mirrored", "Gone at source"),
    "green": ("Up to date",),
}
_WORST_FIRST = [status for statuses in _COLOURS.values() for status in statuses]
_NUMBERS = (
    "Behind",
    "Lag",
    "Missing",
    "Size",
    "Attempts",
    "Ranges",
    "Entries",
    "Problems",
    "Within target",
    "Breaches",
    "Commits",
    "Objects",
    "Bytes",
)


def line(text: str) -> Text:
    """One line, whatever it holds."""
    return Text(clean(text))


def state(status: str) -> Text:
    """A state in its colour."""
    colour = next((colour for colour, statuses in _COLOURS.items() if status in statuses), "")
    return Text(clean(status), style=colour)


def severity(status: str) -> int:
    """Where it stands among the others, the worst first."""
    return _WORST_FIRST.index(status) if status in _WORST_FIRST else -1


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Rows below their headings; numbers stand at the right."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        drawn.add_column(column, justify="right" if column in _NUMBERS else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(cell if isinstance(cell, Text) else line(cell) for cell in row))
    return drawn


def listed(columns: Sequence[str], rows: Sequence[Sequence[str | Text]], *, none: str, more: bool) -> RenderableType:
    """A table and whether there are `more` rows than it has; `none` where there is no row."""
    if not rows:
        return line(none)
    return Group(table(columns, rows), *(["", "There are more."] if more else []))


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Names beside their values."""
    drawn = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    drawn.add_column(style="dim")
    drawn.add_column(overflow="fold")
    for name, value in rows:
        drawn.add_row(name, line(value))
    return drawn
