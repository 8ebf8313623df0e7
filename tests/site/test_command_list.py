"""What `manage.py help` says to somebody who looks for a command."""

from __future__ import annotations

from lakemirror_site.command_list import CommandLine, own_commands


def test_help_begins_with_our_commands_and_what_each_does() -> None:
    text = CommandLine(["manage.py", "help"]).main_help_text()
    assert text.index("adopt ") < text.index("webhook ") < text.index("\nDjango\n") < text.index("dbshell")
    assert "startproject" not in text and "flush" not in text
    assert all(len(line) <= 120 for line in text.splitlines())


def test_every_command_of_ours_says_what_it_does() -> None:
    commands = dict(own_commands())
    assert {"audit", "rebuild", "create_user", "check_config", "rotate_secrets"} <= set(commands)
    assert all(len(text) > 10 and text[0].isupper() for text in commands.values())


def test_shells_still_complete_all_names() -> None:
    names = CommandLine(["manage.py", "help"]).main_help_text(commands_only=True).splitlines()
    assert {"adopt", "migrate", "startproject"} <= set(names)
