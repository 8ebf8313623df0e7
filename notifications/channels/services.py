"""Add, change, delete and test channels, with rights and audit.

Secrets go in and never come out again: not in an answer, an audit event or an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any
from uuid import uuid4

from django.db import IntegrityError, transaction

from adapters.apprise import sending as apprise
from audit.verbs import Verb
from core.access.policies import auth_arn
from core.errors import Conflict, Invalid, NotFound, Stale, Unreadable
from core.notifications.channels import ChannelKind, ChannelSecrets, ChannelWish, check_channel
from core.notifications.hours import Hours
from core.notifications.mail import MailServer
from core.notifications.rules import Rule
from db import clock
from db.resealing import reseal
from deployment import config
from jobs import duties
from notifications.models import Channel
from notifications.outbox import DUTY
from notifications.senders import Message, Outcome, send
from rbac import services as rbac
from web.etags import ANYTHING, Seen

LIST, CREATE, UPDATE, DELETE, TEST = (
    f"auth:{verb}" for verb in ("ListChannels", "CreateChannel", "UpdateChannel", "DeleteChannel", "TestChannel")
)


def channel_arn(name: str) -> str:
    """A channel as a resource of `auth:*` actions."""
    return auth_arn("channel", name)


def etag_of(row: Channel) -> str:
    """Names its settings of now."""
    return f'"{row.pk}-{row.version}"'


def find(name: str) -> Channel:
    """The channel of that name. Raises NotFound."""
    row = Channel.objects.filter(name=name).first()
    if row is None:
        raise NotFound(f"there is no channel '{name[:80]}'")
    return row


def channel_create(*, actor: Any, wish: ChannelWish, secrets: ChannelSecrets) -> Channel:
    """Add one; it hears of what happens from now on. Raises Denied, Invalid and Conflict."""
    right = (CREATE, channel_arn(wish.name))
    rbac.require(actor, right)
    _check(wish, secrets, new=True)
    row = Channel(changed_at=clock.now())
    row.put(wish, secrets)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            duties.ensure(DUTY, row.pk, config.current().region)
            rbac.audit(actor=actor, right=right, verb=Verb.CREATE, before=None, after=_shown(row))
    except IntegrityError as error:
        raise Conflict(f"there is a channel '{wish.name}' already", field="name", hint="Edit that one") from error
    return row


def channel_update(
    *, actor: Any, name: str, wish: ChannelWish, secrets: ChannelSecrets, seen: Seen = ANYTHING
) -> Channel:
    """Replace the settings; a secret that isn't given stays. Raises Denied, NotFound, Stale and Invalid."""
    right = (UPDATE, channel_arn(name))
    rbac.require(actor, right)
    wish = replace(wish, name=name)
    kept = _kept(find(name), wish, secrets)
    _check(wish, replace(secrets, password=kept), new=False)
    with transaction.atomic():
        row = _locked(name, seen)
        before = _shown(row)
        row.put(wish, _merged(row, wish, secrets))
        after = _shown(row) | {field: "changed" for field, given in asdict(secrets).items() if given}
        if changed := {field: value for field, value in after.items() if before.get(field) != value}:
            row.version, row.changed_at = row.version + 1, clock.now()
            row.save()
            was = {field: before[field] for field in changed if field in before}
            rbac.audit(actor=actor, right=right, verb=Verb.CHANGE, before=was or None, after=changed)
    return row


def channel_delete(*, actor: Any, name: str, seen: Seen = ANYTHING, reason: str = "") -> None:
    """Forget one, with what was sent by it and what waits. Raises Denied, NotFound and Stale."""
    right = (DELETE, channel_arn(name))
    rbac.require(actor, right)
    with transaction.atomic():
        row = _locked(name, seen)
        rbac.audit(actor=actor, right=right, verb=Verb.DELETE, before=_shown(row), after=None, reason=reason)
        row.delete()


def channel_test(*, actor: Any, name: str) -> Outcome:
    """Send a message now that says that it is a test, also by one that is disabled. Raises Denied and NotFound, and
    nothing for what is wrong with the receiver."""
    rbac.require(actor, (TEST, channel_arn(name)))
    return send(find(name), Message(str(uuid4()), "test", clock.now(), None))


def rotate() -> tuple[list[str], list[str], list[Unreadable]]:
    """Seal the secrets of all channels with the key of now: as `db.resealing.reseal`."""
    return reseal(Channel, "name", _note_resealed)


def _note_resealed(row: Channel) -> None:
    right, after = (UPDATE, channel_arn(row.name)), {"sealed": "with the current key"}
    rbac.audit(actor="system:rotate", right=right, verb=Verb.CHANGE, before=None, after=after)


def _private() -> bool:
    return config.current().notifications.private_addresses


def _locked(name: str, seen: Seen) -> Channel:
    row = Channel.objects.select_for_update().filter(name=name).first()
    if row is None:
        raise NotFound(f"there is no channel '{name[:80]}'")
    if seen.tags is not None and etag_of(row) not in seen.tags:
        raise Stale(
            f"the settings of the channel '{name}' have changed since the ETag that If-Match names",
            field="If-Match",
            hint="GET the channel, review its settings, and send the change again with the new ETag",
        )
    return row


def _check(wish: ChannelWish, secrets: ChannelSecrets, *, new: bool) -> None:
    check_channel(wish, secrets, new=new, private=_private())
    if wish.kind == ChannelKind.APPRISE and secrets.url:
        apprise.check(secrets.url, private=_private())


def _kept(row: Channel, wish: ChannelWish, given: ChannelSecrets) -> str:
    """The password that is to hold: the old one goes to no other server than it was given for. Raises Invalid."""
    if wish.kind != row.kind:
        hint = "Create another channel and delete this one"
        raise Invalid(f"a channel of the kind {row.kind} can't be changed to another kind", field="kind", hint=hint)
    if given.password or wish.mail is None or not wish.mail.username:
        return given.password
    old, new = row.mail_server, wish.mail
    if (old.host, old.port, old.security, old.username) != (new.host, new.port, new.security, new.username):
        hint = "Enter it again, or keep server and user name as they were"
        raise Invalid("the stored password is for another server or user", field="password", hint=hint)
    return row.secrets().password


def _merged(row: Channel, wish: ChannelWish, given: ChannelSecrets) -> ChannelSecrets:
    """The secrets that hold from now on. Raises Unreadable if one is to stay that can't be opened."""
    if wish.kind == ChannelKind.MAIL:
        return ChannelSecrets(password=_kept(row, wish, given))
    if all(getattr(given, field) for field in ChannelKind(wish.kind).secrets):
        return given
    old = row.secrets()
    return ChannelSecrets(given.url or old.url, given.signing_secret or old.signing_secret)


def _shown(row: Channel) -> dict[str, Any]:
    """What the audit may have of it."""
    shown = asdict(row.wish)
    rule, mail = shown.pop("rule"), shown.pop("mail") or {}
    return shown | rule | mail | {"target": row.target}


def wish_of(values: Mapping[str, Any]) -> tuple[ChannelWish, ChannelSecrets]:
    """Settings and secrets from a body, which names the secrets with the rest."""
    given = dict(values)
    secrets = ChannelSecrets(*(given.pop(field, "") for field in ("url", "signing_secret", "password")))
    mail = given.pop("mail", None)
    of_rule = {field.name: given.pop(field.name) for field in fields(Rule) if field.name in given}
    of_rule["hours"] = Hours.of(of_rule["hours"]) if of_rule.get("hours") else None
    server = MailServer.of(mail) if mail is not None else None
    return ChannelWish(**given, rule=Rule(**of_rule), mail=server), secrets
