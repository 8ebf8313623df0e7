"""Apprise runs in a process that can reach the internet and nothing of ours. Each test starts that process."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from adapters.apprise import sending
from core.errors import Denied, Invalid, Unreachable
from tests.notifications.apprise_receiver import AppriseReceiver, apprise_receiver


@pytest.fixture
def there() -> Iterator[AppriseReceiver]:
    with apprise_receiver() as made:
        yield made


def send(url: str, *, private: bool = True) -> sending.Answer:
    return sending.send(url, "Title", "Body", bad=True, private=private)


def test_a_message_arrives_without_proxies_and_secrets_of_the_environment(
    there: AppriseReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert send(there.apprise_url) == sending.Answer(True, "JSON took it")
    [one] = there.taken
    assert (one["title"], one["message"], one["type"]) == ("Title", "Body", "failure")


def test_a_refusal_is_told_without_the_token(there: AppriseReceiver) -> None:
    there.answers = [500]
    answer = send(there.apprise_url + "?:Key=t0ken-of-a-header")
    assert not answer.taken and "500" in answer.text and "t0ken" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f000001"])
def test_an_address_of_our_network_is_not_called(there: AppriseReceiver, host: str) -> None:
    with pytest.raises(Denied, match="an address of a private network"):
        send(there.apprise_url.replace("127.0.0.1", host), private=False)
    assert not there.taken


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("syslog://", "it may not change anything on this machine"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?template=/etc/hostname", "may not read a file"),
    ],
)
def test_this_machine_is_out_of_reach(url: str, words: str) -> None:
    with pytest.raises(Denied, match=words):
        send(url)


def test_a_service_that_does_not_answer_is_killed(there: AppriseReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SECONDS", 0.05)
    with pytest.raises(Unreachable, match="did not answer within"):
        send(there.apprise_url)


def test_what_is_no_url_of_a_service_is_refused_without_it() -> None:
    with pytest.raises(Invalid) as refused:
        sending.check("slack://only-one-t0ken", private=True)
    assert refused.value.field == "url" and "t0ken" not in str(refused.value)
    sending.check("json://example.com/path", private=False)


def test_what_is_asked_of_the_process_is_no_argument_of_it(
    there: AppriseReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments of processes can be read by everybody on the machine."""
    seen: list[str] = []
    real = sending.subprocess.run

    def run(command: list[str], **more: object) -> object:
        seen.extend([*command, json.dumps(more["env"])])
        return real(command, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(sending.subprocess, "run", run)
    send(there.apprise_url)
    assert there.taken and "t0ken" not in " ".join(seen)
