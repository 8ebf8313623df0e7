"""What `manage.py help` says: LakeMirror's own commands with what each does, then those of Django that are of use."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.management import ManagementUtility, get_commands, load_command_class
from django.utils.text import Truncator

_APPS = ("lakemirror_site", "audit", "jobs", "rbac", "installations", "mirrors", "exports", "notifications", "console")
_OF_USE = ("check", "changepassword", "dbshell", "migrate", "shell", "showmigrations", "qinfo", "qmonitor")
_WIDTH = 92


class CommandLine(ManagementUtility):
    """Django's command line, whose help begins with what this project brings."""

    def main_help_text(self, commands_only: bool = False) -> str:
        """The list of commands; with `commands_only`, as shells complete them, their names alone."""
        if commands_only:
            return super().main_help_text(commands_only=True)
        program = self.prog_name
        lines = [f"usage: {program} COMMAND [OPTIONS]; options of a command: {program} help COMMAND", "", "LakeMirror"]
        lines += [f"  {name:<20}{text}" for name, text in own_commands()]
        lines += ["", "Django", "  " + ", ".join(_OF_USE), "", f"All commands by name: {program} help --commands"]
        return "\n".join(lines)


def own_commands() -> Iterator[tuple[str, str]]:
    """The name of each command of ours, with the first sentence of its help."""
    for name, app in sorted(get_commands().items()):
        if app in _APPS:
            text = " ".join(load_command_class(app, name).help.split())
            yield name, Truncator(text.split(". ")[0].rstrip(".")).chars(_WIDTH)
