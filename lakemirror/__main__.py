"""`lakemirror` on the command line."""

from __future__ import annotations

import sys

import click

from lakemirror.app import lakemirror

INTERRUPTED = 130


def main() -> None:
    """Carries out a command and ends with its status."""
    try:
        status = lakemirror.main(prog_name="lakemirror", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        status = problem.exit_code
    except click.Abort:
        status = INTERRUPTED
    sys.exit(status)


if __name__ == "__main__":
    main()
