"""Users of a lakeFS who come here by their keys there: each has a user of their own, who is nobody else.

Who is `ann` in the lakeFS of us-east-1 is `ann@us-east-1` here. A user whom somebody made here is never taken for them,
whatever the name, and a name that was given anew in lakeFS is not taken for the one who had it before.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from core.errors import Conflict
from rbac.models import Group, User
from rbac.services.administrators import administrator_kept
from rbac.services.groups import group_add
from rbac.services.users import user_create

logger = logging.getLogger(__name__)

ACTOR = "system:lakefs"


@dataclass(frozen=True, slots=True)
class There:
    """Somebody as a lakeFS knows them; the date, in seconds since 1970, tells them from an earlier one of the name."""

    region: str
    name: str
    creation_date: int

    @property
    def name_here(self) -> str:
        """What they are called here."""
        return f"{self.name}@{self.region}"


def lakefs_user(there: There, *, group: str = "") -> User:
    """Their user here, who is made when they first come, as a member of the group ("": without rights). Conflict if the
    name is another's, Invalid if it can't be a name here."""
    user = _here(there)
    if user is None:
        try:
            return _made(there, group)
        except Conflict:
            user = _here(there)  # made by another request just now
            if user is None:
                raise
    _check_same(user, there)
    return user


def _here(there: There) -> User | None:
    return User.objects.filter(username=there.name_here).first()


def _check_same(user: User, there: There) -> None:
    """Raises Conflict for a user whom somebody made here, and for the counterpart of an earlier user of the name."""
    if user.lakefs_region != there.region:
        raise Conflict(
            f"'{user.username}' is a user who was created here",
            hint="Ask for another user here, with an access key of its own",
        )
    if user.lakefs_creation_date != there.creation_date:
        raise Conflict(
            f"in lakeFS '{there.name}' was created again since '{user.username}' first came: that is somebody else",
            hint="Have that user deleted here: the new one can then sign in, without the previous one's rights",
        )


@administrator_kept()
def _made(there: There, group: str) -> User:
    full_name = f"{there.name} of the lakeFS in {there.region}"
    user = user_create(actor=ACTOR, username=there.name_here, friendly_name=full_name[:200])
    user.lakefs_region, user.lakefs_creation_date = there.region, there.creation_date
    user.save(update_fields=["lakefs_region", "lakefs_creation_date"])
    if group:
        _give_group(user, group)
    return user


def _give_group(user: User, name: str) -> None:
    """Who can't be given the group comes without rights: that is told, and keeps nobody out."""
    group = Group.objects.filter(name=name).first()
    if group is None:
        logger.error("auth.lakefs.group: there is no group '%s', so %s has no rights yet", name, user.username)
        return
    group_add(actor=ACTOR, group=group, user=user, reason="auth.lakefs.group")
