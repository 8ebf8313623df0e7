"""A channel as somebody wants it: where messages go, without what is secret; what is wrong with it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from core.errors import Invalid
from core.notifications.addresses import HERE, PRIVATE_HINT, is_private_literal, origin_of, scheme_of, split_url
from core.notifications.mail import MailServer
from core.notifications.rules import Rule

LONGEST_URL, LONGEST_SECRET, SHORTEST_SECRET = 2000, 200, 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
Problem = tuple[str, str, str]
"""A field, what is wrong with it, what to do."""


class ChannelKind(StrEnum):
    """How messages are sent."""

    WEBHOOK = "webhook"
    APPRISE = "apprise"
    MAIL = "mail"

    @property
    def word(self) -> str:
        """As a person reads it."""
        return {"webhook": "Webhook", "apprise": "Apprise", "mail": "Email"}[self.value]

    @property
    def secrets(self) -> tuple[str, ...]:
        """The fields that are sealed."""
        return {"webhook": ("url", "signing_secret"), "apprise": ("url",), "mail": ("password",)}[self.value]


@dataclass(frozen=True, slots=True)
class ChannelWish:
    """All that is no secret, with what is told by it."""

    name: str
    kind: str = ChannelKind.WEBHOOK.value
    enabled: bool = True
    rule: Rule = Rule()
    mail: MailServer | None = None


@dataclass(frozen=True, slots=True)
class ChannelSecrets:
    """What is sealed: the address, which often has a token in its path; what messages are signed with; the password of
    a mail server. "" in a change: it stays as it is."""

    url: str = ""
    signing_secret: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return "ChannelSecrets(***)"


def check_channel(wish: ChannelWish, secrets: ChannelSecrets, *, new: bool, private: bool) -> None:
    """Raise Invalid for the first thing that can't be so. `private`: whether addresses of private networks may be. Of a
    channel that is there, a password that is kept is among the `secrets`; other ones need not be."""
    for field, problem, hint in _problems(wish, secrets, new, private):
        raise Invalid(problem, field=field, hint=hint)


def target_of(wish: ChannelWish, secrets: ChannelSecrets) -> str:
    """What may be shown of where messages go: scheme and host, an Apprise URL's scheme, who gets mail."""
    if wish.mail is not None:
        return wish.mail.target
    return f"{scheme_of(secrets.url)}://" if wish.kind == ChannelKind.APPRISE else origin_of(secrets.url)


def _problems(wish: ChannelWish, secrets: ChannelSecrets, new: bool, private: bool) -> Iterator[Problem]:
    if not _NAME.fullmatch(wish.name) or wish.name == "new":
        yield "name", f"'{wish.name[:80]}' is not a valid channel name", "Use letters, digits, _ . and -, but not 'new'"
    if wish.kind not in {*ChannelKind}:
        yield "kind", f"'{wish.kind[:40]}' is not one of {', '.join(ChannelKind)}", ""
        return
    field, problem = wish.rule.problem()
    if field:
        yield field, problem, ""
    yield from _foreign(wish, secrets)
    if wish.kind == ChannelKind.MAIL:
        yield from _bad_mail(wish, secrets, private)
    elif wish.kind == ChannelKind.APPRISE:
        yield from _bad_apprise(secrets.url, new)
    else:
        yield from _bad_webhook(secrets, new, private)


def _foreign(wish: ChannelWish, secrets: ChannelSecrets) -> Iterator[Problem]:
    """What channels of this kind don't have."""
    kind = ChannelKind(wish.kind)
    for field in ("url", "signing_secret", "password"):
        if getattr(secrets, field) and field not in kind.secrets:
            yield field, f"a channel of the kind {kind} has no such field", "Remove it"
    if wish.mail is not None and kind is not ChannelKind.MAIL:
        yield "mail", f"a channel of the kind {kind} has no such field", "Remove it"


def _bad_mail(wish: ChannelWish, secrets: ChannelSecrets, private: bool) -> Iterator[Problem]:
    if wish.mail is None:
        yield "mail", "the mail server is missing", "Enter host, sender and recipients"
        return
    if len(secrets.password) > LONGEST_SECRET or re.search(r"[\x00\r\n]", secrets.password):
        yield "password", f"a password has {LONGEST_SECRET} characters at most, all of them on one line", ""
    yield from wish.mail.problems(password=bool(secrets.password), private=private)


def _bad_apprise(url: str, new: bool) -> Iterator[Problem]:
    scheme = scheme_of(url)
    if not url:
        if new:
            yield "url", "the Apprise URL is missing", "Use one like slack://TokenA/TokenB/TokenC"
    elif not scheme or len(url) > LONGEST_URL or re.search(r"[\x00-\x20\x7f]", url):
        yield "url", "this is not an Apprise URL", "Use one like slack://TokenA/TokenB/TokenC, without spaces"
    elif scheme in HERE:
        yield "url", f"{scheme}:// is not allowed: it would reach this machine itself", "Choose another service"


def _bad_webhook(secrets: ChannelSecrets, new: bool, private: bool) -> Iterator[Problem]:
    if new and not secrets.url:
        yield "url", "the address is missing", "Use https://host/path, as the receiver documents it"
    if secrets.url:
        yield from _bad_url(secrets.url, private)
    yield from _bad_secret(secrets.signing_secret, new)


def _bad_secret(secret: str, new: bool) -> Iterator[Problem]:
    if new and not secret:
        hint = "Choose one that only the receiver knows too, to verify that messages come from LakeMirror"
        yield "signing_secret", "the signing secret is missing", hint
    elif secret and (re.search(r"[^!-~]", secret) or not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET):
        problem = f"must be {SHORTEST_SECRET} to {LONGEST_SECRET} ASCII letters, digits and signs, without spaces"
        yield "signing_secret", problem, ""


def _bad_url(url: str, private: bool) -> Iterator[Problem]:
    parts = split_url(url)
    if parts is None or len(url) > LONGEST_URL or parts.scheme not in ("http", "https") or not parts.hostname:
        yield "url", "this is not the address of a webhook", "Use https://host/path, as the receiver documents it"
    elif parts.username is not None or parts.fragment:
        yield "url", "the address must not contain a name, password or #", "Remove it"
    elif not private and is_private_literal(parts.hostname):
        yield "url", f"{parts.hostname} is an address of a private network", PRIVATE_HINT
