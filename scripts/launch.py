"""What stands behind scripts/run, scripts/test and scripts/manage; needs nothing but Python's own library."""

from __future__ import annotations

import sys

from launcher import guard, manage, run, test
from launcher.console import Problem, console

COMMANDS = {"run": run.main, "test": test.main, "manage": manage.main}


def main() -> int:
    command = COMMANDS[sys.argv[1]]
    if command is not manage.main:
        guard.stand()
    try:
        return command(sys.argv[2:])
    except Problem as problem:
        console.fail(str(problem))
        return 1
    except OSError as error:
        console.fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
