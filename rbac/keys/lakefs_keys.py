"""Keys of a lakeFS: it is asked whose they are. Nothing of them is kept but, for a short while, a digest in memory."""

from __future__ import annotations

import re

from django.utils.crypto import salted_hmac
from rest_framework.exceptions import PermissionDenied

from core.errors import Conflict, Invalid
from deployment import config
from deployment.wiring import clients
from rbac.keys.answers import KEY_ID, No
from rbac.keys.rate_limit import Buckets, TooMany
from rbac.keys.ttl_cache import Remembered
from rbac.models import User
from rbac.services.lakefs_users import There, lakefs_user
from web import requests

ASKED_PER_SECOND, ASKED_AT_ONCE = 5, 50
"""How often one address may make us ask lakeFS: who tries many keys is not to keep it from its work."""


class LakeFSKeys:
    """Keys that a lakeFS lets in. Rights are those of the user here who is that user's counterpart."""

    def __init__(self) -> None:
        self._remembered: Remembered[There] = Remembered(10_000)
        self._asked = Buckets(per_second=ASKED_PER_SECOND, burst=ASKED_AT_ONCE)

    def user_of(self, key_id: str, secret: str) -> User | No:
        """The counterpart of its user; PermissionDenied if there can be none."""
        if not KEY_ID.fullmatch(key_id) or not secret or not re.fullmatch(r"[ -~]+", secret):
            return No.UNKNOWN
        there = self._asked_lately(key_id, secret)
        if there is None:
            return No.UNKNOWN
        try:
            user = lakefs_user(there, group=config.current().auth.lakefs.group)
        except (Conflict, Invalid) as error:
            raise PermissionDenied(
                f"lakeFS knows this key, but its user '{there.name[:80]}' can't sign in: {error}"
            ) from error
        return user if user.is_active else No.WRONG

    def _asked_lately(self, key_id: str, secret: str) -> There | None:
        settings = config.current()
        region = settings.auth.lakefs.region or settings.region
        whole = f"{region} {settings.lakefs_url(region)} {key_id}:{secret}"
        # the name never changes, whatever this file is called
        mark = salted_hmac("rbac.authenticators.lakefs", whole, algorithm="sha256").hexdigest()
        return self._remembered.get(mark) or self._ask(region, key_id, secret, mark)

    def _ask(self, region: str, key_id: str, secret: str, mark: str) -> There | None:
        if wait := self._asked.take(requests.network(requests.address(requests.current()))):
            raise TooMany("too many unknown keys to look up in lakeFS from this address", wait)
        found = clients.lakefs_user(key_id, secret)
        if found is None:
            return None
        there = There(region, *found)
        self._remembered.put(mark, there, config.current().auth.lakefs.ttl.total_seconds())
        return there
