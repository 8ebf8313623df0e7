"""What our user and key need at an installation for all that is done there now, by what each app tells of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from core.access.documents import Document
from core.errors import NotFound
from core.installations.replication_rights import Need, lakefs_policy, store_policy, wide_lakefs_policy
from deployment.wiring import region_settings

Known = tuple[list[Need], int]
"""What somebody may see, and how much of it they may not."""
_registered: list[Callable[[Any, str], Known]] = []


@dataclass(frozen=True, slots=True)
class Policies:
    """The policy for our user at the lakeFS (None: there is none), and for our key at its store (None: no place there
    is known). `left_out`: so many things that need rights are kept from who asks."""

    lakefs: Document | None
    store: Document | None
    left_out: int = 0


def register_needs(needs: Callable[[Any, str], Known]) -> None:
    """Let an app say what it needs in a region, to somebody: as far as they may see it."""
    _registered.append(needs)


def installation_policies(actor: Any, region: str) -> Policies:
    """For all that is done there; for whatever may come, where that is nothing. Raises NotFound."""
    if region not in region_settings.names():
        raise NotFound(f"there is no installation '{region[:80]}'")
    known = [needs(actor, region) for needs in _registered]
    all_needs = [need for needs, _ in known for need in needs]
    left_out = sum(number for _, number in known)
    return Policies(_at_lakefs(region, all_needs, left_out), store_policy(all_needs), left_out)


def _at_lakefs(region: str, needs: list[Need], left_out: int) -> Document | None:
    if region not in region_settings.lakefs_names():
        return None
    name = f"Replication-{region}"
    return lakefs_policy(name, needs) if needs or left_out else wide_lakefs_policy(name)
