"""Commands of alerts and channels, against the application itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from notifications.models import Alert, Channel
from rbac.models import User
from tests.cli.speaking import Terminal
from tests.mirrors.harness import Deployment
from tests.notifications.factories import make_alerts, make_channel
from tests.notifications.receiver import SECRET, Receiver, receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture
def olgas(lm: Deployment, terminal_of: Callable[[User], Terminal], owner: User) -> Terminal:
    """An administrator's terminal."""
    return terminal_of(owner)


def test_alerts_are_listed(olgas: Terminal) -> None:
    assert olgas("alert", "list").stdout == "No alerts.\n"
    make_alerts()
    shown = olgas("alert", "list").stdout
    assert "mirror-damaged  lake-eu  critical" in shown and "mirror-tampered" not in shown
    assert "closed 20" in olgas("alert", "list", "--status", "closed").stdout
    assert len(olgas.json("alert", "list", "--status", "all")["results"]) == 2


def test_one_is_acknowledged_and_snoozed(olgas: Terminal) -> None:
    make_alerts()
    number = str(Alert.objects.open().get().pk)
    assert "(acknowledged by olga)" in olgas("alert", "acknowledge", number, "--note", "mine").stdout
    assert "(snoozed until 20" in olgas("alert", "snooze", number, "--for", "4h").stdout
    assert olgas.json("alert", "snooze", number, "--for", "0")["snoozed_until"] is None
    assert Alert.objects.open().get().note == "mine"
    assert olgas("alert", "snooze", "99999", "--for", "1h").exit_code == 4
    done = olgas("alert", "snooze", number, "--for", "soon")
    assert done.exit_code == 2 and "use 30m, 4h, 7d, or 0" in done.stderr


def test_a_channel_is_created_tested_listed_and_deleted(olgas: Terminal, there: Receiver) -> None:
    assert "alerts are not sent anywhere" in olgas("channel", "list").stdout
    secrets = ["--address", f"{there.url}/t0ken", "--signing-secret", SECRET]
    done = olgas(
        "channel", "create", "pager", *secrets, "--least-severity", "error", "--tell-again", "4h", "--name", "a*"
    )
    assert done.stdout == "Channel pager created\n"
    made = Channel.objects.get()
    assert (made.least_severity, made.tell_again_seconds, made.names) == ("error", 14400, ["a*"])
    assert olgas("channel", "test", "pager").stdout.endswith("s: 204\n") and there.taken[0]["event"] == "test"
    assert olgas("channel", "edit", "pager", "--disable", "--region", "eu-*").stdout == "Channel pager saved\n"
    made.refresh_from_db()
    assert (made.enabled, made.regions, made.names) == (False, ["eu-*"], ["a*"])
    assert made.secrets().signing_secret == SECRET
    assert olgas("channel", "edit", "pager").exit_code == 2
    olgas("channel", "edit", "pager", "--all-alerts", "--enable")
    shown = olgas("channel", "list").stdout
    assert there.url in shown and "No messages yet" in shown and "t0ken" not in shown
    assert olgas("channel", "delete", "pager").stdout == "Channel pager deleted\n" and not Channel.objects.exists()


def test_a_message_that_is_not_taken_is_a_no(olgas: Terminal, there: Receiver) -> None:
    make_channel(there.url)
    there.answers = [500]
    done = olgas("channel", "test", "pager")
    assert done.exit_code == 1 and "not accepted in" in done.stdout
    assert "pager did not accept the message" in done.stderr


def test_what_was_sent_is_listed(olgas: Terminal) -> None:
    make_channel()
    assert olgas("channel", "deliveries", "pager").stdout == "No messages yet.\n"
    make_alerts()
    shown = olgas("channel", "deliveries", "pager").stdout
    assert "opened  mirror-damaged   lake-eu  waiting" in shown and "closed" in shown


def test_a_mail_channel_keeps_its_server_in_an_edit(olgas: Terminal) -> None:
    server = ["--host", "smtp.example.com", "--from", "lm@example.com", "--to", "on-call@example.com"]
    assert olgas("channel", "create", "mails", "--via", "mail", *server).exit_code == 0
    olgas("channel", "edit", "mails", "--to", "a@example.com", "--to", "b@example.com", "--security", "tls")
    made = Channel.objects.get().mail_server
    assert (made.host, made.port, made.recipients) == ("smtp.example.com", 465, ("a@example.com", "b@example.com"))


def test_a_maintenance_window_is_created_listed_and_ended(olgas: Terminal) -> None:
    assert olgas("maintenance", "list").stdout == "No maintenance windows.\n"
    made = olgas("maintenance", "create", "--reason", "new disks", "--for", "4h", "--region", "eu-*")
    assert made.exit_code == 0 and "running" in made.stdout and "in eu-*" in made.stdout
    [one] = olgas.json("maintenance", "list")["results"]
    assert one["reason"] == "new disks" and "new disks" in olgas("maintenance", "list").stdout
    assert "ended" in olgas("maintenance", "end", str(one["id"])).stdout
    assert olgas("maintenance", "end", str(one["id"])).exit_code == 5
