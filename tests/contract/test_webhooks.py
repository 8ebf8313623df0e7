"""Messages leave for the internet alone, whatever a name, a redirect or the environment says."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from adapters import webhooks
from core.errors import Denied, Unreachable
from core.notifications.addresses import is_public
from tests.notifications.receiver import Receiver, receiver

HEADERS = {"LakeMirror-Signature": "t=1,v1=0", "LakeMirror-Delivery": "an-id"}


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def post(url: str, *, private: bool = False) -> webhooks.Answer:
    return webhooks.post(url, b"{}", HEADERS, private=private)


def test_a_message_is_posted_and_answered(there: Receiver) -> None:
    assert post(f"{there.url}/hook?x=1", private=True).taken and there.ids == ["an-id"]


def test_a_refusal_comes_with_its_words(there: Receiver) -> None:
    there.answers = [403]
    answer = post(f"{there.url}/hook", private=True)
    assert (answer.status, answer.text, answer.taken) == (403, "said to /hook", False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0x7f000001", "2130706433", "127.1"])
def test_this_machine_is_refused_however_it_is_written(there: Receiver, host: str) -> None:
    port = there.url.rpartition(":")[2]
    with pytest.raises((Denied, Unreachable)):
        post(f"http://{host}:{port}/")
    assert not there.ids


def test_a_name_that_leads_to_a_private_address_is_refused(there: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(there.url.rpartition(":")[2])
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(Denied, match=r"hooks\.example\.com resolves to 127\.0\.0\.1, an address of a private network"):
        post(f"http://hooks.example.com:{port}/")
    assert not there.ids


def test_a_name_is_looked_up_once(there: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """What answers with an address of the internet first and with ours then would get through otherwise."""
    asked: list[Any] = []

    def lookup(*args: Any, **_: Any) -> list[Any]:
        asked.append(args)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", args[1]))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    assert post(there.url.replace("127.0.0.1", "hooks.example.com"), private=True).taken and len(asked) == 1


def test_a_redirect_is_an_answer_like_any_other(there: Receiver) -> None:
    there.answers = [302]
    assert post(there.url, private=True).status == 302 and len(there.ids) == 1


def test_proxies_of_the_environment_are_not_used(there: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert post(there.url, private=True).taken


def test_who_answers_drop_by_drop_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_drip, args=(server,), daemon=True).start()
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"did not answer within 0 s|broke off"):
            post(f"http://127.0.0.1:{server.getsockname()[1]}/", private=True)
        assert time.monotonic() - began < 3


def test_a_name_with_many_addresses_of_which_none_answers_takes_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delivery holds its lease for so long and no longer."""
    monkeypatch.setattr(webhooks, "SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.create_connection(server.getsockname()):
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", server.getsockname())] * 20
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        began = time.monotonic()
        with pytest.raises(Unreachable, match="it took too long"):
            post("http://hooks.example.com/", private=True)
        assert time.monotonic() - began < 3


def _drip(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        try:
            for _ in range(100):
                connection.send(b"H")
                time.sleep(0.1)
        except OSError:
            return


def test_who_is_not_there_is_named_without_the_path() -> None:
    with pytest.raises(Unreachable) as error:
        post("http://127.0.0.1:9/token", private=True)
    assert "127.0.0.1" in str(error.value) and "token" not in str(error.value)


@pytest.mark.parametrize(
    "address",
    [
        *("10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fd00::1", "fec0::1", "ff02::1"),
        *("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "::7f00:1"),
    ],
)
def test_these_are_not_of_the_internet(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_these_are(address: str) -> None:
    assert is_public(address)
