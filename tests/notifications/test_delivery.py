"""What happens reaches every channel, once if all goes well, and by the same id where it has to be sent again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from adapters import webhooks
from core.notifications.channels import ChannelSecrets, ChannelWish
from core.notifications.kinds import AlertKind
from db import clock
from jobs.models import Duty
from mirrors.models import Mirror
from notifications import delivery
from notifications.models import Alert, Channel, Delivery
from tests.mirrors.harness import Deployment
from tests.notifications.receiver import SECRET, Receiver
from tests.notifications.rounds import Rounds, seen, trouble

pytestmark = pytest.mark.django_db
DAMAGED = trouble(AlertKind.MIRROR_DAMAGED)


def sent(lm: Deployment, channel: Channel) -> str:
    """One round of the channel's duty, with all that waits due."""
    delivery.look_round()
    Delivery.objects.waiting().update(due_at=clock.now() - timedelta(seconds=1))
    return lm.run(Duty.objects.get(kind=delivery.DUTY, subject=channel.pk).pk)


def told(there: Receiver) -> list[tuple[str, str]]:
    return [(message["event"], message["alert"]["kind"]) for message in there.taken]


def test_opening_and_closing_are_told_signed(lm: Deployment, channel: Channel, there: Receiver, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    assert sent(lm, channel) == "1 sent"
    for seconds in (10, 20):
        looks.at(seconds, seen())
    sent(lm, channel)
    assert told(there) == [("opened", "mirror-damaged"), ("closed", "mirror-damaged")] and not there.wrong
    opened, closed = there.taken
    assert opened["alert"]["id"] == closed["alert"]["id"] and opened["id"] == there.ids[0] != closed["id"]
    assert opened["alert"]["remedy"] and opened["organization"] == "demo"
    assert there.headers["Content-Type"] == "application/json"


def test_nothing_is_sent_twice(lm: Deployment, channel: Channel, there: Receiver, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    assert [sent(lm, channel), sent(lm, channel)] == ["1 sent", "0 sent"] and len(there.ids) == 1


def test_who_is_killed_between_sending_and_noting_sends_it_again_by_the_same_id(
    lm: Deployment, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    looks.at(0, seen(DAMAGED))
    with mock.patch("notifications.delivery._note", side_effect=SystemExit), pytest.raises(SystemExit):
        sent(lm, channel)
    Duty.objects.update(until=None)  # the lease of who was killed has ended
    assert Delivery.objects.waiting().get().tries == 1
    sent(lm, channel)
    assert len(there.ids) == 2 and len(set(there.ids)) == 1
    assert Delivery.objects.get().state == "sent" and Delivery.objects.get().tries == 2


def test_who_was_overtaken_notes_nothing(lm: Deployment, channel: Channel, there: Receiver, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    stale = Delivery.objects.select_related("event").get()
    assert delivery.attempt(channel, Delivery.objects.select_related("event").get()) is not None
    assert delivery.attempt(channel, stale) is None
    assert len(there.ids) == 1


def test_what_is_refused_is_tried_again_later_and_noted(
    lm: Deployment, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    there.answers = [503, 500]
    looks.at(0, seen(DAMAGED))
    assert sent(lm, channel).startswith("0 sent; then: 503: said to /***")
    one = Delivery.objects.get()
    assert one.state == "waiting" and one.due_at > clock.now() + timedelta(seconds=5)
    sent(lm, channel)
    sent(lm, channel)
    one.refresh_from_db()
    assert (one.state, one.tries) == ("sent", 3) and len(there.taken) == 3
    assert [line["answer"].split(":")[0] for line in one.log] == ["503", "500", "204"]


def test_a_text_that_no_database_takes_as_it_is_stops_nothing(
    lm: Deployment, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    """PostgreSQL keeps no NUL, neither of a file's name nor of what a receiver says."""
    looks.at(0, seen(trouble(AlertKind.MIRROR_DAMAGED, sentence="a\0b is missing.")))
    with mock.patch.object(webhooks, "post", return_value=webhooks.Answer(503, "busy\0")):
        assert sent(lm, channel) == "0 sent; then: 503: busy\0"
    assert Delivery.objects.get().answer == "503: busy\0"
    assert sent(lm, channel) == "1 sent" and there.taken[0]["alert"]["reason"] == "a\0b is missing."


def test_after_a_day_it_is_given_up(lm: Deployment, channel: Channel, there: Receiver, looks: Rounds) -> None:
    there.answers = [503]
    looks.at(-86_400, seen(DAMAGED))
    sent(lm, channel)
    assert Delivery.objects.get().state == "given_up"


def test_what_happened_to_an_alert_is_told_in_order(
    lm: Deployment, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    looks.at(-100, seen(DAMAGED))
    for seconds in (-90, -80):
        looks.at(seconds, seen())
    Delivery.objects.filter(event__verb="opened").update(due_at=clock.now() + timedelta(hours=1))
    delivery.look_round()
    lm.run(Duty.objects.get(kind=delivery.DUTY).pk)
    assert not there.ids
    sent(lm, channel)
    sent(lm, channel)
    assert [event for event, _ in told(there)] == ["opened", "closed"]


def test_one_channel_that_is_down_holds_up_no_other(
    lm: Deployment, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    down = Channel(changed_at=clock.now())
    down.put(ChannelWish("down"), ChannelSecrets("http://127.0.0.1:9/", SECRET))
    down.save()
    looks.at(0, seen(DAMAGED))
    assert "127.0.0.1 did not answer" in sent(lm, down)
    assert sent(lm, channel) == "1 sent"


def test_who_did_not_hear_of_it_is_not_told_that_it_is_over(
    lm: Deployment, there: Receiver, looks: Rounds, request: pytest.FixtureRequest
) -> None:
    looks.at(0, seen(DAMAGED))
    request.getfixturevalue("channel")
    for seconds in (10, 20):
        looks.at(seconds, seen())
    assert not Delivery.objects.exists()


def test_a_disabled_channel_is_told_nothing(lm: Deployment, channel: Channel, there: Receiver, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    Channel.objects.update(enabled=False)
    assert sent(lm, channel) == "it is disabled; 1 message given up"
    looks.at(1, seen(DAMAGED, trouble(AlertKind.MIRROR_TAMPERED)))
    assert Alert.objects.open().count() == 2 and Delivery.objects.count() == 1 and not there.ids


def test_the_duty_of_a_channel_that_was_deleted_goes(lm: Deployment, channel: Channel) -> None:
    delivery.look_round()
    duty = Duty.objects.get(kind=delivery.DUTY)
    channel.delete()
    assert lm.run(duty.pk) == "this channel no longer exists" and not Duty.objects.filter(pk=duty.pk).exists()


def test_redirects_are_not_followed(lm: Deployment, channel: Channel, there: Receiver, looks: Rounds) -> None:
    there.answers = [302]
    looks.at(0, seen(DAMAGED))
    assert "redirects are not followed" in sent(lm, channel) and len(there.ids) == 1


def test_an_address_of_a_private_network_is_not_called(
    lm: Deployment, channel: Channel, there: Receiver, looks: Rounds, tell: Any
) -> None:
    tell(private_addresses=False)
    looks.at(0, seen(DAMAGED))
    assert "an address of a private network. Use a public address" in sent(lm, channel)
    assert not there.ids and Delivery.objects.get().state == "waiting"


def test_nothing_secret_is_noted(lm: Deployment, channel: Channel, there: Receiver, looks: Rounds) -> None:
    there.answers = [500]
    looks.at(0, seen(DAMAGED))
    said = sent(lm, channel) + str(Delivery.objects.get().log)
    assert "token-of-the-path" not in said and SECRET not in said and "500" in said


def test_a_row_that_somebody_else_wrote_is_not_used(
    lm: Deployment, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    Channel.objects.update(name="another")
    looks.at(0, seen(DAMAGED))
    assert "was changed by something other than LakeMirror" in sent(lm, channel) and not there.ids


def test_mirrors_go_on_while_a_receiver_is_slow(lm: Deployment, channel: Channel, looks: Rounds) -> None:
    """A message is never sent in the round that opens the alert: what is told of does not wait for who is told."""
    with mock.patch.object(webhooks, "post", side_effect=AssertionError("sent while it opened")):
        looks.at(0, seen(DAMAGED))
    assert Delivery.objects.waiting().count() == 1 and Mirror.objects.exists()
