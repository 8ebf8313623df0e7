"""Two people may edit one thing: who says which settings they saw does not overwrite what the other one chose.

An ETag names the settings of a mirror or an installation, not its state, which changes all the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.http import parse_etags

from core.errors import Invalid, Stale


@dataclass(frozen=True, slots=True)
class Seen:
    """What a caller has seen of something: one of these tags, or anything at all for None."""

    tags: frozenset[str] | None = None

    def require(self, tag: str, name: str) -> None:
        """Raise Stale unless the settings of now are among those that were seen. Ask while the row is locked."""
        if self.tags is not None and tag not in self.tags:
            raise Stale(
                f"the settings of '{name}' have changed since the ETag that If-Match names",
                field="If-Match",
                hint="GET it again, review its settings, and send the change with the new ETag",
            )


ANYTHING = Seen()


def seen(if_match: str) -> Seen:
    """The meaning of an If-Match header (RFC 9110, 13.1.1), "" for none. A weak tag never matches there."""
    if not if_match.strip():
        return ANYTHING
    tags = parse_etags(if_match)
    if not tags:
        raise Invalid("expected * or quoted ETags", field="If-Match")
    return ANYTHING if tags == ["*"] else Seen(frozenset(tags))
