"""Somebody who reads all the time, at every place: whatever is read is whole, and was written to that very key."""

from __future__ import annotations

import random
import threading
import time

from botocore.exceptions import BotoCoreError, ClientError

from tests.rule_fleet import contents
from tests.rule_fleet.journal import Journal, Kind
from tests.rule_fleet.layout import Group, Place
from tests.rule_fleet.stores import Stores

PAUSE = 0.3


class Reader(threading.Thread):
    """Reads until it is stopped."""

    def __init__(self, stores: Stores, groups: list[Group], journal: Journal, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.stores, self.groups, self.journal, self.random = stores, groups, journal, chance
        self.over = threading.Event()
        self.reads, self.failed = 0, 0
        self.problems: list[str] = []

    def run(self) -> None:
        """A random object of a random place, again and again."""
        while not self.over.wait(PAUSE):
            group = self.random.choice(self.groups)
            place = self.random.choice(group.places)
            try:
                keys = sorted(self.stores.listed(place.region, place.bucket))
                for key in self.random.sample(keys, min(4, len(keys))):
                    self.look(group, place, key)
            except (BotoCoreError, ClientError, OSError):
                self.failed += 1
                self.over.wait(0.5)

    def look(self, group: Group, place: Place, key: str) -> int | None:
        """The number of the write that a place shows of a key; None: it shows none, or no whole one. Raises what the
        store answers."""
        try:
            answer = self.stores.s3(place.region).get_object(Bucket=place.bucket, Key=key)
            data = answer["Body"].read()
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                return None
            raise
        self.reads += 1
        at = f"{place.bucket} {time.strftime('%H:%M:%S')}"
        try:
            number = contents.read(data, key)
        except contents.Torn as torn:
            self.problems.append(f"read at {at}: {torn}")
            return None
        deed = self.journal.deeds.get(number)
        if deed is None or deed.kind is not Kind.PUT or (deed.group, deed.key) != (group.name, key):
            self.problems.append(f"read at {at}: {key} has write {number}, which nobody made there: {deed}")
        return number
