"""The command and its parts."""

from __future__ import annotations

import click

from lakemirror import __version__
from lakemirror.commands import (
    channels,
    copying,
    details,
    edit,
    exports,
    lifecycle,
    maintenance,
    notifications,
    objects,
    policies,
    read,
    repairs,
    rules,
    sweeps,
    verify_export,
)
from lakemirror.commands.replication import deletes as rule_deletes
from lakemirror.commands.replication import passes

EXIT_STATUS = """\b
Exit status:
  0  done
  1  the answer is no: something is missing or wrong, or waiting doesn't help
  2  wrong usage, here or of the API
  3  refused: no key, a wrong one, or one without the right
  4  not found
  5  conflict with the current state
  6  LakeMirror can't be reached, or can't answer
  124  not done within --timeout
  130  interrupted
"""
COMMANDS = (
    read.list_mirrors,
    read.show,
    read.blockers,
    read.certify,
    details.commits,
    details.commit,
    details.runs,
    details.held,
    details.lag,
    details.loss,
    details.unreplicated,
    details.manifest,
    details.waivers,
    lifecycle.create,
    edit.edit,
    lifecycle.pause,
    lifecycle.resume,
    lifecycle.sync,
    lifecycle.validate,
    lifecycle.delete,
    repairs.retry,
    copying.copying,
    repairs.bring,
    repairs.repair,
    repairs.prioritise,
    repairs.reset_branch,
    repairs.waive,
    repairs.withdraw,
    sweeps.sweeps,
    sweeps.sweep,
    sweeps.now,
    sweeps.approve,
    sweeps.reject,
    policies.of_a_mirror,
    policies.preflight,
)
EXPORT_COMMANDS = (
    exports.list_exports,
    exports.set_export,
    exports.get,
    exports.status,
    exports.run,
    exports.repair,
    verify_export.verify,
    verify_export.repair_drift,
    exports.pause,
    exports.resume,
    exports.label,
    exports.delete,
)
ALERT_COMMANDS = (notifications.list_alerts, notifications.acknowledge, notifications.snooze)
MAINTENANCE_COMMANDS = (maintenance.list_windows, maintenance.create, maintenance.end)
CHANNEL_COMMANDS = (
    channels.list_channels,
    channels.create,
    channels.edit,
    channels.test,
    channels.deliveries,
    channels.delete,
)
RULE_COMMANDS = (
    rules.list_rules,
    rules.show,
    rules.create,
    rules.edit,
    rules.add_target,
    rules.remove_target,
    rules.pause,
    rules.resume,
    rules.scan,
    rules.retry,
    rules.failures,
    rules.limits,
    passes.resync,
    passes.dry_run,
    passes.estimate,
    passes.passes,
    passes.show_pass,
    rule_deletes.approve,
    rule_deletes.confirm,
    rules.delete,
)


@click.group(epilog=EXIT_STATUS)
@click.version_option(__version__, prog_name="lakemirror")
def lakemirror() -> None:
    """Operate LakeMirror from any machine.

    \b
    LAKEMIRROR_URL, LAKEMIRROR_ACCESS_KEY_ID and LAKEMIRROR_SECRET_ACCESS_KEY say which,
    or url, access_key_id and secret_access_key in ~/.config/lakemirror.yaml.
    """


@lakemirror.group(epilog=EXIT_STATUS)
def mirror() -> None:
    """Mirrors of repositories in other regions."""


@lakemirror.group("object", epilog=EXIT_STATUS)
def object_group() -> None:
    """Objects: where they can be read."""


@lakemirror.group(epilog=EXIT_STATUS)
def export() -> None:
    """Exports: branches copied to places that are read without lakeFS.

    A branch is named lakefs://REPOSITORY/BRANCH, or lakefs://REPOSITORY@BRANCH; where it is exported to several places,
    those with a name are lakefs://REPOSITORY/BRANCH:NAME.
    """


@lakemirror.group("rule", epilog=EXIT_STATUS)
def rule_group() -> None:
    """Replication rules: objects of a bucket or prefix copied to others."""


@lakemirror.group(epilog=EXIT_STATUS)
def installation() -> None:
    """Installations: a region's lakeFS and object store."""


@lakemirror.group(epilog=EXIT_STATUS)
def alert() -> None:
    """Alerts: what is wrong, or was."""


@lakemirror.group("maintenance", epilog=EXIT_STATUS)
def maintenance_group() -> None:
    """Maintenance windows: times in which alerts are not sent."""


@lakemirror.group(epilog=EXIT_STATUS)
def channel() -> None:
    """Channels: where alerts are sent."""


installation.add_command(policies.of_an_installation)
for command in COMMANDS:
    mirror.add_command(command)
object_group.add_command(objects.locate)
for command in EXPORT_COMMANDS:
    export.add_command(command)
for command in ALERT_COMMANDS:
    alert.add_command(command)
for command in MAINTENANCE_COMMANDS:
    maintenance_group.add_command(command)
for command in CHANNEL_COMMANDS:
    channel.add_command(command)
for command in RULE_COMMANDS:
    rule_group.add_command(command)
