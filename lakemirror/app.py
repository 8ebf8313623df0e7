"""The command and its parts."""

from __future__ import annotations

import click

from lakemirror import __version__, asking, changing, exporting, looking, mending, verifying

EXIT_STATUS = """\b
Exit status:
  0  done
  1  the answer is no: something is missing or wrong, or waiting doesn't help
  2  wrong usage, here or of the API
  3  refused: no key, a wrong one, or one without the right
  4  not found
  5  something else is in the way
  6  LakeMirror can't be reached, or can't answer
  124  not done within --timeout
  130  interrupted
"""
COMMANDS = (
    asking.list_mirrors,
    asking.show,
    asking.blockers,
    asking.certify,
    looking.commits,
    looking.commit,
    looking.runs,
    looking.lag,
    looking.loss,
    looking.waivers,
    changing.create,
    changing.pause,
    changing.resume,
    changing.sync,
    changing.validate,
    changing.delete,
    mending.retry,
    mending.repair,
    mending.prioritise,
    mending.reset_branch,
    mending.waive,
    mending.withdraw,
)
EXPORT_COMMANDS = (
    exporting.list_exports,
    exporting.set_export,
    exporting.get,
    exporting.status,
    exporting.run,
    exporting.repair,
    verifying.verify,
    exporting.pause,
    exporting.resume,
    exporting.delete,
)


@click.group(epilog=EXIT_STATUS)
@click.version_option(__version__, prog_name="lakemirror")
def lakemirror() -> None:
    """Asks and tells a LakeMirror, wherever it runs.

    \b
    LAKEMIRROR_URL, LAKEMIRROR_ACCESS_KEY_ID and LAKEMIRROR_SECRET_ACCESS_KEY say which,
    or url, access_key_id and secret_access_key in ~/.config/lakemirror.yaml.
    """


@lakemirror.group(epilog=EXIT_STATUS)
def mirror() -> None:
    """Mirrors of repositories in other regions."""


@lakemirror.group(epilog=EXIT_STATUS)
def export() -> None:
    """Branches, exported to places that need no lakeFS to be read.

    A branch is named lakefs://REPOSITORY/BRANCH, or lakefs://REPOSITORY@BRANCH.
    """


for command in COMMANDS:
    mirror.add_command(command)
for command in EXPORT_COMMANDS:
    export.add_command(command)
