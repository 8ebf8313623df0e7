"""Add, change and delete installations; what uses them; seal their secrets anew.

Secrets go in and never come out again: not in an answer, an audit event or an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from audit.verbs import Verb
from core.access.policies import auth_arn
from core.errors import Conflict, NotFound, Stale, Unreadable
from core.installations.settings import Secrets, Wish, check_secrets, check_wish
from core.text.phrases import count
from db import clock
from db.resealing import reseal
from deployment import config
from installations import refresh
from installations.models import Installation, InstallationTest
from rbac import services as rbac
from web.etags import ANYTHING, Seen

LIST, CREATE, UPDATE, DELETE, TEST = (
    "fs:ListInstallations",
    *(f"auth:{verb}Installation" for verb in ("Create", "Update", "Delete", "Test")),
)

_users: dict[str, Callable[[], Mapping[str, int]]] = {}
_of_stores: set[str] = set()
"""What needs no more of an installation than its store."""


def register_user(what: str, by_region: Callable[[], Mapping[str, int]], *, needs_lakefs: bool = True) -> None:
    """Let another app say what of it needs installations, and whether with a lakeFS: how many by region."""
    _users[what] = by_region
    if not needs_lakefs:
        _of_stores.add(what)


def usage(*, of_lakefs: bool = False) -> dict[str, Counter[str]]:
    """By region, how many of what needs it, or its lakeFS; a query for each kind of thing."""
    counts: dict[str, Counter[str]] = {}
    users = {what: told for what, told in _users.items() if not (of_lakefs and what in _of_stores)}
    for what, by_region in users.items():
        for region, number in by_region().items():
            counts.setdefault(region, Counter())[what] = number
    return counts


def usage_words(used: Mapping[str, int]) -> str:
    """'2 mirrors and 1 export'; "" for nothing."""
    parts = [count(number, what, _PLURALS.get(what, f"{what}s")) for what, number in used.items() if number]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


_PLURALS = {"mirrored repository": "mirrored repositories"}


def installation_arn(region: str) -> str:
    """An installation as a resource of `auth:*` actions."""
    return auth_arn("installation", region)


def etag_of(row: Installation) -> str:
    """Names its settings of now."""
    return f'"{row.pk}-{row.version}"'


def of_file(region: str, verb: str) -> Conflict:
    """What somebody is told who wants to change an installation that the configuration file has."""
    hint = f"{verb}  it there, and restart LakeMirror"
    return Conflict(f"the installation '{region}' is in the configuration file", field="region", hint=hint)


def find(region: str) -> Installation:
    """The row of a region. Raises NotFound, and Conflict for one of the file."""
    if region in config.from_file().regions:
        raise of_file(region, "Edit")
    row = Installation.objects.filter(region=region).first()
    if row is None:
        raise NotFound(f"there is no installation '{region[:80]}'")
    return row


def installation_create(*, actor: Any, wish: Wish, secrets: Secrets) -> Installation:
    """Add one; it holds everywhere within seconds. Raises Denied, Invalid and Conflict."""
    right = (CREATE, installation_arn(wish.region))
    rbac.require(actor, right)
    row = checked_candidate(wish, secrets)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            _audit(actor, right, Verb.CREATE, {}, asdict(row.wish))
    except IntegrityError as error:
        raise _taken(wish.region) from error
    refresh.read()
    return row


def checked_candidate(wish: Wish, secrets: Secrets) -> Installation:
    """The row of a new one, not saved. Raises Invalid naming the field, and Conflict for a region that is taken."""
    wish = _whole(wish)
    check_wish(wish)
    check_secrets(wish, secrets, None)
    _check_free(wish.region)
    row = Installation(changed_at=clock.now())
    row.put(wish, secrets)
    return row


def changed_candidate(region: str, wish: Wish, secrets: Secrets) -> tuple[Installation, Secrets]:
    """A row as it would be after a change, not saved, and the secrets that would hold. Raises what a change would:
    Invalid too where a kept secret would go to another address than it was given for."""
    row = find(region)
    wish = _whole(replace(wish, region=region))
    check_wish(wish)
    check_secrets(wish, secrets, row.wish)
    merged = _merged_secrets(row, wish, secrets)
    made = Installation(changed_at=clock.now())
    made.put(wish, merged)
    return made, merged


def installation_update(
    *, actor: Any, region: str, wish: Wish, secrets: Secrets, seen: Seen = ANYTHING
) -> Installation:
    """Replace the settings; a secret that isn't given stays, unless its lakeFS goes. Raises Denied, NotFound, Stale,
    Invalid, and Conflict for one of the file, and where mirrors or exports use a lakeFS that is to go."""
    right = (UPDATE, installation_arn(region))
    rbac.require(actor, right)
    find(region)
    wish = _whole(replace(wish, region=region))
    check_wish(wish)
    with transaction.atomic():
        row = _locked(region, seen)
        check_secrets(wish, secrets, row.wish)
        if row.wish.has_lakefs and not wish.has_lakefs:
            _check_lakefs_unused(region)
        before, after = _changes(row.wish, wish, secrets)
        if after:
            row.put(wish, _merged_secrets(row, wish, secrets))
            row.version, row.changed_at = row.version + 1, clock.now()
            row.save()
            InstallationTest.objects.filter(region=region).delete()  # it was of something else
            _audit(actor, right, Verb.CHANGE, before, after)
    refresh.read()
    return row


def installation_delete(*, actor: Any, region: str, seen: Seen = ANYTHING, reason: str = "") -> None:
    """Forget one that nothing uses. Raises Denied, NotFound, Stale, and Conflict that says what uses it. A row that the
    file has an installation for too may go in any case: it isn't used."""
    right = (DELETE, installation_arn(region))
    rbac.require(actor, right)
    doubled = is_doubled(region)
    if not doubled:
        find(region)
    with transaction.atomic():
        row = _locked(region, seen)
        if not doubled:
            _check_unused(region)
        _audit(actor, right, Verb.DELETE, asdict(row.wish), {}, reason)
        row.delete()
        InstallationTest.objects.filter(region=region).delete()
    refresh.read()


def hold(*regions: str) -> None:
    """Inside of a transaction that stores what needs the stores of these regions: nobody deletes their installations
    before that ends. Raises Conflict where somebody has since this request began."""
    _hold(regions, Installation.objects.all(), "has just been deleted")


def hold_lakefs(*regions: str) -> None:
    """The same of what needs their lakeFS, which nobody takes away before that ends."""
    with_lakefs = Installation.objects.exclude(lakefs_endpoint="")
    _hold(regions, with_lakefs, "has just been deleted, or has lost its lakeFS")


def _hold(regions: Collection[str], usable: QuerySet[Installation], else_: str) -> None:
    added = sorted(set(regions).difference(config.current().own_regions))
    held = usable.select_for_update().filter(region__in=added).order_by("region")
    there = {row.region for row in held} if added else set()
    for region in added:
        if region not in there:
            raise Conflict(f"the installation '{region}' {else_}", field="region", hint="Choose another region")


def is_doubled(region: str) -> bool:
    """Whether the file got an installation of the name of a row later."""
    return region in config.from_file().regions and Installation.objects.filter(region=region).exists()


def _whole(wish: Wish) -> Wish:
    """As it is stored: without slashes at an address's end, and with the deployment that works for it."""
    trimmed = {name: getattr(wish, name).rstrip("/") for name in ("lakefs_endpoint", "store_endpoint", "sts_endpoint")}
    return replace(wish, **trimmed, served_by=wish.served_by or config.current().region)


def _check_free(region: str) -> None:
    if region in config.from_file().regions:
        raise Conflict(
            f"the configuration file has an installation '{region}' already",
            field="region",
            hint="Change it there, or use another name",
        )
    if Installation.objects.filter(region=region).exists():
        raise _taken(region)


def _taken(region: str) -> Conflict:
    return Conflict(f"there is an installation '{region}' already", field="region", hint="Edit that one")


def _locked(region: str, seen: Seen) -> Installation:
    row = Installation.objects.select_for_update().filter(region=region).first()
    if row is None:
        raise NotFound(f"there is no installation '{region}' any more")
    if seen.tags is not None and etag_of(row) not in seen.tags:
        raise Stale(
            f"the settings of the installation '{region}' have changed since the ETag that If-Match names",
            field="If-Match",
            hint="GET the installation, review its settings, and send the change again with the new ETag",
        )
    return row


def _merged_secrets(row: Installation, wish: Wish, given: Secrets) -> Secrets:
    """The secrets that hold from now on. Raises Unreadable if one is to stay that can't be opened."""
    keyed, asked = bool(wish.store_access_key_id), wish.has_lakefs
    if (given.lakefs or not asked) and (given.store or not keyed):
        return given
    old = row.secrets()
    return Secrets((given.lakefs or old.lakefs) if asked else "", (given.store or old.store) if keyed else "")


def _changes(old: Wish, new: Wish, secrets: Secrets) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is different, for the audit: of a secret only that it is a new one."""
    was, now = asdict(old), asdict(new)
    before = {name: was[name] for name in now if was[name] != now[name]}
    after = {name: now[name] for name in before}
    after |= {f"{name}_secret_access_key": "changed" for name in ("lakefs", "store") if getattr(secrets, name)}
    return before, after


def _check_unused(region: str) -> None:
    used = usage_words(usage().get(region, {}))
    if used:
        raise Conflict(f"the installation '{region}' is used by {used}", hint="Delete these first")


def _check_lakefs_unused(region: str) -> None:
    used = usage_words(usage(of_lakefs=True).get(region, {}))
    if used:
        text = f"the lakeFS of the installation '{region}' is used by {used}"
        raise Conflict(text, field="lakefs_endpoint", hint="Delete these first, or leave its address as it is")


def _audit(actor: Any, right: rbac.Right, verb: Verb, before: Any, after: Any, reason: str = "") -> None:
    rbac.audit(actor=actor, right=right, verb=verb, before=before or None, after=after or None, reason=reason)


Rotate = Callable[[], tuple[list[str], list[str], list[Unreadable]]]
"""Seals with the key of now: the names of what was done, of what was done already, and what can't be opened."""
_sealed: dict[str, Rotate] = {}


def register_sealed(noun: str, rotate: Rotate) -> None:
    """Let an app say how its secrets are sealed anew when the key changes; `noun`: what one of them is."""
    _sealed[noun] = rotate


def sealed() -> list[tuple[str, Rotate]]:
    """All whose secrets are in the database, installations first."""
    return [("installation", rotate), *_sealed.items()]


def rotate() -> tuple[list[str], list[str], list[Unreadable]]:
    """Seal the secrets of all of them with the key of now: as `db.resealing.reseal`."""
    return reseal(Installation, "region", _note_resealed)


def _note_resealed(row: Installation) -> None:
    right, after = (UPDATE, installation_arn(row.region)), {"sealed": "with the current key"}
    _audit("system:rotate", right, Verb.CHANGE, {}, after)


def wish_of(values: Mapping[str, Any]) -> tuple[Wish, Secrets]:
    """Settings and secrets from a body, which names the secrets with the rest."""
    given = dict(values)
    secrets = Secrets(given.pop("lakefs_secret_access_key", ""), given.pop("store_secret_access_key", ""))
    return Wish(**given), secrets
