"""An installation as somebody wants it: a region's store, and its lakeFS if it has one, without secrets; what is wrong
with it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

from core.errors import Invalid

LONGEST = 1000
_REGION = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class Access(StrEnum):
    """Where the credentials of a store come from: keys of its own, a profile, or AWS's chain on the machine."""

    KEYS = "keys"
    PROFILE = "profile"
    CHAIN = "chain"


@dataclass(frozen=True, slots=True)
class Wish:
    """All that is no secret. `served_by`: the region of the deployment whose workers handle it; "" in the rest is
    what isn't needed: without `lakefs_endpoint` it is a store for replication rules alone. A role is assumed with what
    `store_access` gives."""

    region: str
    lakefs_endpoint: str = ""
    lakefs_access_key_id: str = ""
    served_by: str = ""
    store_endpoint: str = ""
    store_region: str = ""
    store_path_style: bool = False
    store_access: str = Access.KEYS.value
    store_access_key_id: str = ""
    store_profile: str = ""
    store_role_arn: str = ""
    store_role_external_id: str = ""
    sts_endpoint: str = ""
    ca_bundle: str = ""
    proxy: str = ""

    @property
    def has_lakefs(self) -> bool:
        """Whether mirrors and exports may be there."""
        return bool(self.lakefs_endpoint)

    def about(self) -> str:
        """What the secrets are sealed with: whoever changes the row without their key can't use them elsewhere."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Secrets:
    """What is sealed; "" for what isn't there, or in a wish: what stays as it is."""

    lakefs: str = ""
    store: str = ""

    def __repr__(self) -> str:
        return "Secrets(***)"


def check_wish(wish: Wish) -> None:
    """Raise Invalid for the first thing that can't be so."""
    for field, problem, hint in _problems(wish):
        raise Invalid(problem, field=field, hint=hint)


def check_secrets(wish: Wish, given: Secrets, old: Wish | None) -> None:
    """Raise Invalid where a secret has to be typed: a new one, or one that would be sent to somewhere else."""
    for name in ("lakefs", "store"):
        if not _plain(getattr(given, name)):
            raise Invalid(_ASCII, field=f"{name}_secret_access_key")
    if wish.has_lakefs and not given.lakefs and (old is None or _goes(wish) != _goes(old)):
        shown = old if old is not None and old.has_lakefs else None
        raise Invalid(_ask("lakeFS", shown), field="lakefs_secret_access_key", hint=_WHY if shown else "")
    if given.lakefs and not wish.has_lakefs:
        raise Invalid(_NO_ADDRESS, field="lakefs_endpoint", hint=_OR_NO_KEY)
    keyed = wish.store_access == Access.KEYS
    same = old is not None and old.store_access == Access.KEYS and _signs(wish) == _signs(old)
    if keyed and not given.store and not same:
        raise Invalid(_ask("the store", old), field="store_secret_access_key", hint=_WHY if old else "")
    if given.store and not keyed:
        raise Invalid(_ONLY.format("keys"), field="store_secret_access_key")


_ASCII = f"must be at most {LONGEST} ASCII letters, digits and signs, without spaces"
_WHY = "A stored secret is only used with the key and the address that it was entered for"
_ONLY = "is used only where the store's credentials are {}"
_NO_ADDRESS = "the address of lakeFS is missing, and there is a key for it"
_OR_NO_KEY = "Enter it; or, for a store without lakeFS, leave the key and its secret empty, too"


def _plain(text: str) -> bool:
    return len(text) <= LONGEST and not re.search(r"[^!-~]", text)


def _ask(what: str, old: Wish | None) -> str:
    return f"enter the secret access key of {what} again" if old else f"the secret access key of {what} is missing"


def _goes(wish: Wish) -> tuple[str, ...]:
    """What decides who gets to see lakeFS's secret, which is sent along."""
    return wish.lakefs_endpoint, wish.lakefs_access_key_id, wish.proxy, wish.ca_bundle


def _signs(wish: Wish) -> tuple[str, ...]:
    """The store's is not sent, but signs."""
    return wish.store_endpoint, wish.store_access_key_id, wish.sts_endpoint, wish.proxy, wish.ca_bundle


def _problems(wish: Wish) -> Iterator[tuple[str, str, str]]:
    for name, value in asdict(wish).items():
        if isinstance(value, str) and not _plain(value):
            yield name, _ASCII, ""
    for name in ("region", "served_by"):
        if not _REGION.fullmatch(getattr(wish, name)):
            yield name, f"'{getattr(wish, name)[:80]}' is not a region name", "Use a-z, 0-9 and -, 63 at most"
    if wish.region == "new":
        yield "region", "'new' is reserved for the form for new installations", "Use another name"
    if wish.has_lakefs and not wish.lakefs_access_key_id:
        yield "lakefs_access_key_id", "the access key id of lakeFS is missing", ""
    if wish.lakefs_access_key_id and not wish.has_lakefs:
        yield "lakefs_endpoint", _NO_ADDRESS, _OR_NO_KEY
    if not (wish.has_lakefs or wish.store_endpoint or wish.store_region):
        yield "store_endpoint", "without a lakeFS the store's endpoint is needed", "For AWS enter the store's region"
    yield from _bad_addresses(wish)
    yield from _bad_access(wish)


def _bad_addresses(wish: Wish) -> Iterator[tuple[str, str, str]]:
    for name in ("lakefs_endpoint", "store_endpoint", "sts_endpoint", "proxy"):
        value = getattr(wish, name)
        if value and (problem := _bad_url(value)):
            yield name, *problem
    if wish.lakefs_endpoint.endswith("/api/v1"):
        yield "lakefs_endpoint", "is the address of lakeFS without /api/v1", "Remove that part"
    if wish.ca_bundle and not wish.ca_bundle.startswith("/"):
        hint = "Use an absolute path of a file that exists on every machine that works for this installation"
        yield "ca_bundle", f"'{wish.ca_bundle}' is not an absolute path", hint


def _bad_url(value: str) -> tuple[str, str] | None:
    parts = _split(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return f"'{_shown(value)}' is not a valid address", "Use http://host:port or https://host"
    if "@" in parts.netloc:
        return (
            "an address must not contain a name or password, since everybody who sees it would see them",
            "Remove them",
        )
    if parts.query or parts.fragment:
        return "an address must not contain ? or #", "Remove that part"
    return None


def _split(value: str) -> SplitResult | None:
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _shown(value: str) -> str:
    """A wrong address without what may be a password in it."""
    return re.sub(r"//[^/@]*@", "//***@", value)[:200]


def _bad_access(wish: Wish) -> Iterator[tuple[str, str, str]]:
    if wish.store_access not in {*Access}:
        yield "store_access", f"'{wish.store_access[:40]}' is not one of {', '.join(Access)}", ""
    for access, name, what in (
        (Access.KEYS, "store_access_key_id", "the store's access key id"),
        (Access.PROFILE, "store_profile", "the name of the profile"),
    ):
        if wish.store_access == access and not getattr(wish, name):
            yield name, f"{what} is missing", ""
        if wish.store_access != access and getattr(wish, name):
            yield name, _ONLY.format(access.value), "Leave it empty, or choose those credentials"
    if wish.store_role_arn and not re.fullmatch(r"arn:\S+:\S+", wish.store_role_arn):
        yield "store_role_arn", f"'{wish.store_role_arn[:200]}' is not an ARN", "Use arn:aws:iam::ACCOUNT:role/NAME"
    for name in ("store_role_external_id", "sts_endpoint"):
        if getattr(wish, name) and not wish.store_role_arn:
            yield name, "is used only with a role", "Leave it empty, or give the role's ARN"
