"""How a store is reached, beyond its address: plain values that may stand in a plan, with keys only sealed."""

from __future__ import annotations

from dataclasses import dataclass

EXECUTORS_KEY = "LAKEMIRROR_STORES_KEY"
"""The variable from which executors take the key of what is sealed for them."""


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """Nothing filled in: with the keys that one has, directly, trusting whom this machine trusts.

    `profile`: of the AWS files of the machine that asks, or of its `credentials_file`. `role_arn`: a role that is
    assumed by STS, with the keys, the profile or the usual chain. `ca_bundle`: a file of certificates on the machine
    that asks. `sealed`: keys that only our own executors can read, see adapters/sealing.py.
    """

    profile: str = ""
    credentials_file: str = ""
    role_arn: str = ""
    role_external_id: str = ""
    sts_endpoint: str = ""
    ca_bundle: str = ""
    proxy: str = ""
    sealed: str = ""


DIRECT = StoreAccess()
