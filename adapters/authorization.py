"""Who somebody is, as others know it: a service of lakeFS's authorization API, and a lakeFS itself.

The form is that of `api/authorization.yml` and `api/swagger.yml` of treeverse/lakeFS. Whatever is no clear answer is
Unreachable: nobody may pass because somebody else is out of order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from core.errors import Unreachable

SECONDS = 4.0
_PAGE, _MOST_PAGES = 1000, 20
_POOL = urllib3.PoolManager(maxsize=16, timeout=urllib3.Timeout(connect=2.0, read=SECONDS), retries=False)


class AuthorizationAPI:
    """A service that knows users, keys and policies; `url` is the one that lakeFS's own configuration has."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def credentials_of(self, key_id: str) -> tuple[str, str] | None:
        """The user's name and the secret of a key; None for one that the service doesn't have. Unreachable."""
        credentials = self._get(f"auth/credentials/{quote(key_id, safe='')}")
        if credentials is None:
            return None
        name, secret = credentials.get("user_name"), credentials.get("secret_access_key")
        if not (isinstance(name, str) and isinstance(secret, str) and name and secret):
            raise self._wrong("returned a key without user_name or secret_access_key")
        return name, secret

    def policies_of(self, user: str) -> list[Any]:
        """All policies that reach a user, on their own or through groups, as the service writes them. Unreachable."""
        results: list[Any] = []
        after = ""
        for _ in range(_MOST_PAGES):
            query = urlencode({"effective": "true", "amount": _PAGE, "after": after})
            page = self._get(f"auth/users/{quote(user, safe='')}/policies?{query}")
            if page is None or not isinstance(page.get("results"), list):
                raise self._wrong(f"returned no policies of {user!r}")
            results += page["results"]
            pagination = page.get("pagination")
            if not isinstance(pagination, dict) or not pagination.get("has_more"):
                return results
            after = str(pagination.get("next_offset", ""))
        raise self._wrong(f"returned more than {_PAGE * _MOST_PAGES} policies of {user!r}")

    def _get(self, path: str) -> Mapping[str, Any] | None:
        """What is there; None where there is nothing."""
        return _get(f"{self._url}/{path}", self._headers, nothing=404, who=self._name)

    @property
    def _name(self) -> str:
        return f"the authorization service at {self._url}"

    def _wrong(self, what: str) -> Unreachable:
        return Unreachable(f"{self._name} {what}", hint="No one can sign in through it until this is fixed")


def user_at(url: str, key_id: str, secret: str) -> tuple[str, int] | None:
    """The name of the user whom a lakeFS knows by a key, and when they were made, in seconds since 1970; None for a key
    that it doesn't let in. Unreachable."""
    headers = urllib3.make_headers(basic_auth=f"{key_id}:{secret}") if (key_id + secret).isascii() else {}
    who = f"lakeFS at {url}, which is asked whose this key is,"
    answer = _get(f"{url.rstrip('/')}/api/v1/user", headers, nothing=401, who=who) if headers else None
    if answer is None:
        return None
    user = answer.get("user")
    name = user.get("id") if isinstance(user, dict) else None
    if not isinstance(name, str) or not name:
        raise Unreachable(f"{who} returned no user name")
    made = user.get("creation_date", 0) if isinstance(user, dict) else 0
    if type(made) is not int:
        raise Unreachable(f"{who} returned no creation date of the user")
    return name, made


def _get(url: str, headers: Mapping[str, str], *, nothing: int, who: str) -> Mapping[str, Any] | None:
    """A JSON object; None for the status that says there is none."""
    try:
        answer = _POOL.request("GET", url, headers=dict(headers), redirect=False)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Unreachable(f"{who} doesn't answer ({type(error).__name__})", hint="Try again later") from error
    if answer.status == nothing:
        return None
    if answer.status != 200:
        raise Unreachable(f"{who} answered {answer.status}", hint="No one can sign in through it until this is fixed")
    try:
        content = json.loads(answer.data)
    except ValueError as error:
        raise Unreachable(f"{who} returned something that is not JSON") from error
    if not isinstance(content, dict):
        raise Unreachable(f"{who} returned unexpected JSON")
    return content
