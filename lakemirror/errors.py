"""What may go wrong, and the exit status that tells of it."""

from __future__ import annotations

from typing import IO, Any

import click

from lakemirror.output.formatting import clean


class Problem(click.ClickException):
    """One line for the person at the terminal."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"lakemirror: {clean(' '.join(self.message.split()))}", file=file, err=file is None)


class No(Problem):
    """The answer is no."""

    exit_code = 1


class WrongUsage(Problem):
    """What was given, here or in the configuration, can't be used."""

    exit_code = 2


class Refused(Problem):
    """No key, a wrong one, or one whose user lacks a right."""

    exit_code = 3


class NotThere(Problem):
    """What was named does not exist."""

    exit_code = 4


class Conflict(Problem):
    """Something else is in the way, or it was changed meanwhile."""

    exit_code = 5


class Unreachable(Problem):
    """Nothing answers, or what answers is not able to, or is no LakeMirror."""

    exit_code = 6


class TimedOut(Problem):
    """It went on for longer than somebody wanted to wait."""

    exit_code = 124


_OF_STATUS: dict[int, type[Problem]] = {
    401: Refused,
    403: Refused,
    404: NotThere,
    409: Conflict,
    412: Conflict,
    429: Unreachable,
}


def problem_of(status: int) -> type[Problem]:
    """Which problem an HTTP status is."""
    return _OF_STATUS.get(status, Unreachable if status >= 500 else WrongUsage)
