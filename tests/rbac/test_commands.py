"""The commands: safe to run twice, one line for what is wrong."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from deployment import config
from rbac import services
from rbac.models import AccessKey, Policy, User
from tests.deployment.test_config import changed

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "USERNAME", "PASSWORD", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.delenv(f"LAKEMIRROR_ADMIN_{name}", raising=False)
    monkeypatch.delenv("LAKEMIRROR_USER_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", StringIO())


def run(*args: str, **options: Any) -> str:
    out = StringIO()
    call_command(*args, stdout=out, **options)
    return out.getvalue()


def test_the_first_administrator_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEMIRROR_ADMIN_USERNAME", "root")
    monkeypatch.setenv("LAKEMIRROR_ADMIN_PASSWORD", "a long enough one")
    assert run("ensure_admin", "--exists") == "no\n"
    assert run("ensure_admin") == "administrator: root (new)\n"
    assert run("ensure_admin", "--exists") == "yes\n"
    user = User.objects.get()
    assert user.check_password("a long enough one")
    assert services.allowed(user, "auth:CreateUser", "*")


def test_a_second_run_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEMIRROR_ADMIN_PASSWORD", "a long enough one")
    run("ensure_admin")
    monkeypatch.setenv("LAKEMIRROR_ADMIN_PASSWORD", "another long one")
    assert run("ensure_admin") == "administrator: admin (existed already)\n"
    assert User.objects.get().check_password("a long enough one")


def test_without_a_terminal_or_a_password_one_line_says_what_to_set() -> None:
    with pytest.raises(CommandError, match="LAKEMIRROR_ADMIN_PASSWORD"):
        run("ensure_admin")
    assert not User.objects.exists()


def test_a_poor_password_makes_no_administrator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEMIRROR_ADMIN_PASSWORD", "admin")
    with pytest.raises(CommandError, match="too short"):
        run("ensure_admin")
    assert not Policy.objects.exists()


def test_the_administrators_key_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEMIRROR_ADMIN_PASSWORD", "a long enough one")
    monkeypatch.setenv("LAKEMIRROR_ADMIN_ACCESS_KEY_ID", "AKIALAKEMIRRORDEMO")
    monkeypatch.setenv("LAKEMIRROR_ADMIN_SECRET_ACCESS_KEY", "lakemirror-demo-secret")
    assert "lakemirror-demo-secret" in run("ensure_admin", "--access-key")
    assert "existed already" in run("ensure_admin", "--access-key")
    assert services.key_check(key_id="AKIALAKEMIRRORDEMO", secret="lakemirror-demo-secret") is not None


def test_a_known_user_becomes_administrator(outsider: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEMIRROR_ADMIN_USERNAME", "otto")
    assert "is an administrator now" in run("ensure_admin")


def test_a_user_with_a_group_and_a_key_is_made_at_the_command_line(owner: User) -> None:
    assert "access keys only" in run("create_user", "bot", "--group", "Viewers", "--no-password")
    printed = run("create_access_key", "bot", "--days", "3", "--description", "nightly").split()
    key = services.key_check(key_id=printed[3], secret=printed[7])
    assert key is not None
    assert key.expires_at is not None
    assert services.allowed(key.user, "fs:ListRepositories", "*")


def test_a_user_whose_group_does_not_exist_is_not_made(owner: User) -> None:
    with pytest.raises(CommandError, match="there is no group 'Typo'"):
        run("create_user", "bot", "--group", "Typo")
    assert not User.objects.filter(username="bot").exists()


def test_a_policy_from_a_file_is_stored_and_attached(outsider: User, tmp_path: Path) -> None:
    statement = {"effect": "allow", "action": ["fs:Read*"], "resource": "*"}
    path = tmp_path / "reader.json"
    path.write_text(json.dumps({"id": "Reader", "statement": [statement]}))
    assert run("attach_policy", str(path), "--user", "otto") == "Reader: attached to otto\n"
    assert run("attach_policy", "Reader", "--user", "otto") == "Reader: was already attached to otto\n"


@pytest.mark.parametrize("text", ["{", '{"id": "x", "statement": []}', "\udcff"])
def test_a_policy_file_that_is_wrong_is_one_line(outsider: User, tmp_path: Path, text: str) -> None:
    path = tmp_path / "reader.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CommandError) as caught:
        run("attach_policy", str(path), "--user", "otto")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        ("create_access_key", "nobody"),
        ("create_access_key", "otto", "--days", "0"),
        ("create_access_key", "otto", "--key-id", "a:b"),
        ("attach_policy", "Nothing", "--user", "otto"),
        ("attach_policy", "ReadAll", "--group", "Nothing"),
        ("attach_policy", "missing.json", "--user", "otto"),
    ],
)
def test_what_does_not_exist_is_one_line(outsider: User, command: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        run(*command)
    assert not AccessKey.objects.exists()


def test_a_link_to_choose_a_password_is_shown_once() -> None:
    services.user_create(actor="system:tests", username="tom")
    link, told = run("reset_link", "tom", "--url", "https://lm.example.com").splitlines()
    assert link.startswith("https://lm.example.com/password-reset/")
    assert told.startswith("Works once, until ")
    with pytest.raises(CommandError, match="there is no user 'otto'"):
        run("reset_link", "otto")


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({}, "http://localhost:"),
        ({"web": {"allowed_hosts": [".example.com", "lm.example.com"]}}, "https://lm.example.com/password-reset/"),
        ({"notifications": {"site_url": "https://a.example.com"}}, "https://a.example.com/password-reset/"),
    ],
)
def test_a_link_has_the_address_that_is_configured(
    fields: dict[str, Any], begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.user_create(actor="system:tests", username="tom")
    data = json.loads(json.dumps(changed("auth", {"encrypt": {"secret_key": "k"}}))) | fields
    monkeypatch.setattr(config, "current", lambda: config.parse(data))
    assert run("reset_link", "tom").startswith(begins)
