"""What brings objects in a life: it may be late, be told other bytes, or leave half of an object behind."""

from __future__ import annotations

import hashlib
import random

from core.bringing import Side
from core.errors import RemoteFailure
from core.exporting.deadline import Late
from core.types import ObjectInfo
from tests.fakes import FakeMover
from tests.promise.stores import WatchedStore

WRONG = 0.05


class Carrier(FakeMover):
    """The answer to a write is a look at what was written: no more than that is known of it."""

    def __init__(self, source: WatchedStore, store: WatchedStore, chance: random.Random) -> None:
        super().__init__(source, store)
        self.chance = chance

    def bring(self, source: str, uri: str, size: int, etag: str = "") -> ObjectInfo:
        """Raises Late now and then, and Unbrought after a write that broke off."""
        if self.chance.random() < WRONG:
            raise Late
        data = self._as_wanted(source, etag)
        wrong = self.chance.random() < WRONG
        if wrong:
            data = self.chance.choice([data[:-1], bytes(len(data)), b""])
        with self._telling(Side.DESTINATION):
            self.store.put(uri, data)
            if wrong and self.chance.random() < 0.5:
                raise RemoteFailure("the answer to a write got lost")
        self.store.looked(uri, False)
        return ObjectInfo(uri.split("/", 3)[3], len(data), hashlib.md5(data).hexdigest())
