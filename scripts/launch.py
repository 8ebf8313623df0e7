"""What stands behind the scripts beside it; needs nothing but Python's own library."""

from __future__ import annotations

import sys

from launcher import cli, guard, manage, run, supply_chain, test
from launcher.console import Problem, console

COMMANDS = {
    "run": run.main,
    "test": test.main,
    "manage": manage.main,
    "lakemirror": cli.main,
    "licences": supply_chain.licences,
    "sbom": supply_chain.sbom,
    "audit": supply_chain.audit,
}
BECOME_ANOTHER = ("manage", "lakemirror")
"""These start nothing that could be left behind."""


def main() -> int:
    name = sys.argv[1]
    if name not in BECOME_ANOTHER:
        guard.stand()
    try:
        return COMMANDS[name](sys.argv[2:])
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
