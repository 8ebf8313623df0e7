"""The client of a region's side door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

import requests

from sandbox.admin import PREFIX
from sandbox.bundle import Stored, pack, unpack
from sandbox.journal import Write

TIMEOUT = 60.0


class SideDoor:
    """One region's journal, objects and faults. Not for several threads at once. Raises requests' exceptions."""

    def __init__(self, s3_url: str) -> None:
        self._url = s3_url + PREFIX
        self._session = requests.Session()
        self._session.trust_env = False

    def journal(self, start: int, *, wait: float, limit: int = 1000) -> tuple[list[Write], int]:
        """Writes from a position on, waiting for the first; and how many there are in all."""
        params = {"start": start, "wait": wait, "limit": limit}
        answer = self._checked(self._session.get(f"{self._url}/journal", params=params, timeout=wait + TIMEOUT)).json()
        return [Write(*fields) for fields in answer["writes"]], answer["length"]

    def read(self, keys: Sequence[tuple[str, str]]) -> list[Stored]:
        """The newest versions of (bucket, key), in this order."""
        answer = self._checked(self._session.post(f"{self._url}/read", json=keys, timeout=TIMEOUT))
        return list(unpack(BytesIO(answer.content)))

    def write(self, objects: Iterable[Stored], *, journal: bool) -> None:
        """Writes objects; in the journal they count as written by a client, else as replicas."""
        body = b"".join(pack(objects))
        params = {"journal": int(journal)}
        self._checked(self._session.post(f"{self._url}/write", data=body, params=params, timeout=TIMEOUT))

    def tell(self, fault: Mapping[str, Any]) -> dict[str, Any]:
        """Arms a fault (fields of `faults.Fault`, plus `service`: s3, lakefs or both when left out)."""
        answer = self._checked(self._session.post(f"{self._url}/faults", json=dict(fault), timeout=TIMEOUT)).json()
        return dict(answer)

    def policy(self, told: Mapping[str, str]) -> bool:
        """Lets the policy of a bucket refuse the `action` below `place`, or nothing where it is ""; False where the
        region has no such bucket."""
        answer = self._checked(self._session.post(f"{self._url}/policy", json=dict(told), timeout=TIMEOUT)).json()
        return bool(answer["found"])

    def faults(self) -> dict[str, Any]:
        """The armed faults by service."""
        return dict(self._checked(self._session.get(f"{self._url}/faults", timeout=TIMEOUT)).json())

    def _checked(self, answer: requests.Response) -> requests.Response:
        answer.raise_for_status()
        return answer
