"""The credentials of stores: what this process was told, what came sealed with a job, or the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from core.store_access import EXECUTORS_KEY, StoreAccess


@dataclass(frozen=True, slots=True)
class StoreKeys:
    """Credentials of a store; they never show in a repr."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def keys_from_environment(region: str) -> StoreKeys | None:
    """The credentials of a region's store: LAKEMIRROR_STORE_<REGION>_ACCESS_KEY_ID and so on, else the AWS names.

    None without either: then boto3's own chain decides (profile, instance role).
    """
    for prefix in (keys_prefix(region), "AWS_") if region else ("AWS_",):
        names = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")
        key_id, secret, token = (os.environ.get(prefix + name, "") for name in names)
        if key_id and secret:
            return StoreKeys(key_id, secret, token)
    return None


_remembered: dict[str, StoreKeys] = {}


def remember_keys(name: str, keys: StoreKeys | None) -> None:
    """For a process that has its keys from a configuration, and not in its environment; None: there are none now."""
    if keys is None:
        _remembered.pop(name, None)
    else:
        _remembered[name] = keys


_PROOF = "proof of parts"


def remember_proof_key(key: str) -> None:
    """For a process that has it from a configuration: what signs proofs of parts."""
    remember_keys(_PROOF, StoreKeys(_PROOF, key))


def proof_key_of(sealed: str) -> str:
    """What signs proofs of parts, as this process was told, or as it came with a job; "" if it can't be had here."""
    known = _remembered.get(_PROOF) or _sealed_keys(StoreAccess(sealed=sealed))
    return known.secret_access_key if known else ""


def sealed_text(sealed: str) -> str:
    """A secret that came with a job, as `seal_keys` sealed it; "" where it can't be opened here."""
    keys = _sealed_keys(StoreAccess(sealed=sealed))
    return keys.secret_access_key if keys else ""


def keys_of(region: str, access: StoreAccess) -> StoreKeys | None:
    """The keys of a place that a job was told of: what this process was told, what came sealed, the environment. With
    a profile the machine's own files have them, whatever the environment says."""
    known = _remembered.get(region) or _sealed_keys(access)
    return known if known or access.profile or access.credentials_file else keys_from_environment(region)


def _sealed_keys(access: StoreAccess) -> StoreKeys | None:
    if not access.sealed or not os.environ.get(EXECUTORS_KEY):
        return None
    from adapters.sealing import sealed_keys  # executors of a Spark without our key need no such library

    keys = sealed_keys(access)
    return None if keys is None else StoreKeys(*keys)


def keys_hint(region: str) -> str:
    """Which variables of this process hold a region's keys, and whether they do: for whoever is refused elsewhere."""
    names = [f"{keys_prefix(region) if region else 'AWS_'}{name}" for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")]
    state = "set there" if all(map(os.environ.get, names)) else "not set there"
    return f"Executors take keys from {' and '.join(names)} ({state}), else from AWS_..."


def keys_prefix(name: str) -> str:
    """What the variables begin with that hold the keys of a region's store, or of a bucket with a store of its own."""
    return f"LAKEMIRROR_STORE_{name.upper().replace('-', '_').replace('.', '_')}_"
