"""Sends one message by a channel, now: a webhook's, one by Apprise, a mail. What came of it is told in words."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import mail, webhooks
from adapters.apprise import sending as apprise
from core.errors import LakeMirrorError
from core.notifications.addresses import secret_parts
from core.notifications.channels import ChannelKind, ChannelSecrets
from core.notifications.signing import DELIVERY, SIGNATURE, signature
from core.notifications.texts import is_bad, text_of
from core.redaction import without_known
from db import clock
from deployment import config
from notifications.models import Channel
from web.serializers import rfc3339

LONGEST = max(webhooks.SECONDS, mail.SECONDS, apprise.SECONDS)
"""No try takes longer, in seconds."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a try came to: whether the message was taken, what was answered, and how long that took, in seconds."""

    taken: bool
    answer: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent. `uid`: the same in each try; `alert`: as the API told it then, None in a test."""

    uid: str
    verb: str
    at: datetime
    alert: Any


def send(channel: Channel, message: Message) -> Outcome:
    """One try, now. Errors are its answer, without what is secret."""
    began, secrets = time.monotonic(), ChannelSecrets()
    try:
        secrets = channel.secrets()
        taken, told = _SENDERS[ChannelKind(channel.kind)](channel, secrets, message)
    except LakeMirrorError as error:
        taken, told = False, str(error)
    return Outcome(taken, _without(told, secrets), round(time.monotonic() - began, 3))


def _by_webhook(channel: Channel, secrets: ChannelSecrets, message: Message) -> tuple[bool, str]:
    fields = {
        "id": message.uid,
        "event": message.verb,
        "at": rfc3339(message.at),
        "organization": config.current().organization_id,
        "alert": message.alert,
    }
    body = json.dumps(fields).encode()
    headers = {
        "Content-Type": "application/json",
        DELIVERY: message.uid,
        SIGNATURE: signature(secrets.signing_secret, body, int(clock.now().timestamp())),
    }
    answer = webhooks.post(secrets.url, body, headers, private=_private())
    return answer.taken, _told(answer)


def _by_apprise(channel: Channel, secrets: ChannelSecrets, message: Message) -> tuple[bool, str]:
    text = text_of(message.verb, message.alert, organization=config.current().organization_id, uid=message.uid)
    answer = apprise.send(secrets.url, text.title, text.body, bad=is_bad(text.severity), private=_private())
    return answer.taken, answer.text


def _by_mail(channel: Channel, secrets: ChannelSecrets, message: Message) -> tuple[bool, str]:
    text = text_of(message.verb, message.alert, organization=config.current().organization_id, uid=message.uid)
    written = mail.message(channel.mail_server, text.title, text.body, uid=message.uid, at=message.at)
    return True, mail.send(channel.mail_server, secrets.password, written, private=_private())


_SENDERS = {ChannelKind.WEBHOOK: _by_webhook, ChannelKind.APPRISE: _by_apprise, ChannelKind.MAIL: _by_mail}


def _private() -> bool:
    return config.current().notifications.private_addresses


def _told(answer: webhooks.Answer) -> str:
    """A receiver's answer in words."""
    said = " ".join(answer.text.split())[:200]
    if 300 <= answer.status < 400:
        return f"{answer.status}: it redirects elsewhere, and redirects are not followed. Use the final address"
    return f"{answer.status}: {said}" if said else str(answer.status)


def _without(text: str, secrets: ChannelSecrets) -> str:
    """Without the secrets, and without what of the address is not shown anywhere."""
    scheme, _, rest = secrets.url.partition("://")
    if scheme in ("http", "https"):
        path = rest.partition("/")[2]
        known = [secrets.url, rest, path, secrets.signing_secret]
    else:
        known = [*secret_parts(secrets.url), secrets.password]
    return without_known(text, [one for one in known if one])
