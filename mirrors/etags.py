"""Two people may edit one mirror: who says which settings they saw does not overwrite what the other one chose.

A mirror's ETag names its settings, not its state, which changes all the time.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from django.utils.http import parse_etags

from core.errors import Invalid, Stale
from mirrors.models import Mirror
from mirrors.serializers import MirrorSettings


def etag_of(mirror: Mirror) -> str:
    """The tag of a mirror's settings. One that is made anew under an old name has another one."""
    told = json.dumps([mirror.pk, MirrorSettings(mirror).data], sort_keys=True)
    return f'"{hashlib.sha256(told.encode()).hexdigest()[:32]}"'


@dataclass(frozen=True, slots=True)
class Seen:
    """What a caller has seen of a mirror: one of these tags, or anything at all for None."""

    tags: frozenset[str] | None = None

    def require(self, mirror: Mirror) -> None:
        """Raise Stale unless the settings are still one of those that were seen. Ask while the row is locked."""
        if self.tags is not None and etag_of(mirror) not in self.tags:
            raise Stale(
                f"the settings of '{mirror.name}' are not those that If-Match names: somebody has changed them",
                hint="GET the mirror, look at its settings, and send the change again with the ETag of that answer",
            )


ANYTHING = Seen()


def seen(if_match: str) -> Seen:
    """The meaning of an If-Match header (RFC 9110, 13.1.1), "" for none. A weak tag never matches there."""
    if not if_match.strip():
        return ANYTHING
    tags = parse_etags(if_match)
    if not tags:
        raise Invalid("expected * or tags in quotes, as an ETag has them", field="If-Match")
    return ANYTHING if tags == ["*"] else Seen(frozenset(tags))
