"""What lies at the places in the end, read from the stores past LakeMirror, and what is wrong with it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from tests.rule_fleet.deployment import Deployment
from tests.rule_fleet.journal import Deed, Journal
from tests.rule_fleet.judge import (
    BothWays,
    Standing,
    Version,
    at_source,
    at_target,
    left_over,
    of_versions,
    unasked,
    unnoted,
)
from tests.rule_fleet.layout import Group, Place
from tests.rule_fleet.people import Writers
from tests.rule_fleet.reader import Reader
from tests.rule_fleet.traffic import OWN, Traffic, read_traffic

TRACEBACK = re.compile(r"Traceback \(most recent call last\)")
EXPLAINED: tuple[tuple[str, str], ...] = ()
"""What the last line of a traceback may begin with, and why."""


class Findings:
    """Of all groups."""

    def __init__(
        self, deployment: Deployment, groups: list[Group], journal: Journal, writers: Writers, kills: list[float]
    ) -> None:
        self.deployment, self.stores, self.kills = deployment, deployment.stores, kills
        self.groups, self.journal, self.writers = groups, journal, writers
        self.requests = self.objects = 0

    # --- quick looks --------------------------------------------------------------------------------------------------

    def unequal(self) -> list[str]:
        """Groups whose places do not have the same, by listings. Raises what the stores answer."""
        found = []
        for group in self.groups:
            if group.locks:
                source, *targets = (self._keys(place) for place in group.places)
                found += [group.name for target in targets if not source.items() <= target.items()]
            elif group.versions:
                sides = [self._versions(place) for place in group.places]
                found += [group.name] if sides[0] != sides[1] else []
            else:
                first, *others = (self._keys(place) for place in group.places)
                found += [group.name] if any(other != first for other in others) else []
        return [f"the places of {name} differ" for name in found]

    def everything(self) -> dict[str, list[Version]]:
        """All versions in all buckets."""
        places = [place for group in self.groups for place in group.places]
        return {place.bucket: self.stores.versions(place.region, place.bucket) for place in places}

    def _keys(self, place: Place) -> dict[str, str]:
        return self.stores.listed(place.region, place.bucket)

    def _versions(self, place: Place) -> list[Version]:
        return [one for one in self.stores.versions(place.region, place.bucket) if not one.key.startswith(OWN)]

    # --- the end ------------------------------------------------------------------------------------------------------

    def all(self, reader: Reader) -> list[str]:
        """What is wrong."""
        traffic = read_traffic(self.stores.logs)
        self.requests = traffic.requests
        found: list[str] = []
        listings: dict[Place, dict[str, int]] = {}
        for group in self.groups:
            for place in group.places:
                keys = self._keys(place)
                read = {key: reader.look(group, place, key) for key in keys}
                listings[place] = {key: number or 0 for key, number in read.items()}
                self.objects += len(keys)
            deeds, own = self.journal.of(group.name), traffic.of(place.bucket for place in group.places)
            found += [f"{group.name}: {told}" for told in self._judged(group, deeds, own, listings)]
        found += reader.problems
        found += [*self._counts(listings), *self._uploads(traffic), *self._logs()]
        return list(dict.fromkeys(found))

    def _judged(
        self, group: Group, deeds: dict[str, list[Deed]], traffic: Traffic, listings: dict[Place, dict[str, int]]
    ) -> Iterator[str]:
        if group.locks:
            yield from self._plain(group, deeds, traffic)
        elif group.versions:
            yield from of_versions(deeds, {place.bucket: self._versions(place) for place in group.places})
        else:
            yield from self._both_ways(group, deeds, traffic, listings)

    def _both_ways(
        self, group: Group, deeds: dict[str, list[Deed]], traffic: Traffic, listings: dict[Place, dict[str, int]]
    ) -> Iterator[str]:
        first, *others = (listings[place] for place in group.places)
        for key in sorted({*deeds, *(key for there in (first, *others) for key in there)}):
            has = [there.get(key) for there in (first, *others)]
            if len(set(has)) > 1:
                yield f"{key} is write {' and '.join(map(str, has))}"
            rejected = self.journal.rejected.get((group.name, key), 0.0)
            case = BothWays(key, deeds.get(key, []), has[0], traffic, rejected, self.kills, self.stores.heeds)
            yield from case.problems()

    def _plain(self, group: Group, deeds: dict[str, list[Deed]], traffic: Traffic) -> Iterator[str]:
        source, *targets = group.places
        there = self._standings(source)
        own = {key: [one for one in some if one.place == source] for key, some in deeds.items()}
        yield from at_source(own, there)
        rejected = {key for name, key in self.journal.rejected if name == group.name}
        for target in targets:
            foreign = {key for key, some in deeds.items() if any(one.place == target for one in some)}
            found = self._standings(target)
            may_stay = rejected | foreign | unnoted(found, traffic, target.bucket, self.kills)
            for told in at_target(there, found, may_stay, time.time()):
                yield f"{target.bucket}: {told}"
            yield from (f"{target.bucket}: somebody's {key} is gone" for key in foreign - found.keys())
        yield from unasked(own, traffic, [target.bucket for target in targets])

    def _standings(self, place: Place) -> dict[str, Standing]:
        return {key: self._standing(place, key) for key in self._keys(place)}

    def _standing(self, place: Place, key: str) -> Standing:
        s3, at = self.stores.s3(place.region), {"Bucket": place.bucket, "Key": key}
        head, tags = s3.head_object(**at), s3.get_object_tagging(**at)["TagSet"]
        until = head.get("ObjectLockRetainUntilDate")
        return Standing(
            int(head["Metadata"].get("soak", 0)),
            head["ETag"].strip('"'),
            head["ContentType"],
            tuple(sorted((tag["Key"], tag["Value"]) for tag in tags)),
            head.get("ObjectLockMode", ""),
            until.timestamp() if until else 0.0,
            head.get("ObjectLockLegalHoldStatus") == "ON",
        )

    # --- what the API says --------------------------------------------------------------------------------------------

    def _counts(self, listings: dict[Place, dict[str, int]]) -> Iterator[str]:
        rules = {rule["name"]: rule for rule in self.deployment.rules()}
        for group in self.groups:
            for name, source, targets in group.ways:
                yield from self._counts_of(rules[name], group, listings[source], [listings[one] for one in targets])

    def _counts_of(
        self, rule: dict[str, Any], group: Group, source: dict[str, int], targets: list[dict[str, int]]
    ) -> Iterator[str]:
        name = rule["name"]
        if rule["scanned_objects"] != len(source) and not group.versions:
            yield f"{name} has {rule['scanned_objects']} objects, and the listing {len(source)}"
        for link, target in zip(rule["links"], targets, strict=True):
            at = f"{name}/{link['number']}"
            counts = ("pending_objects", "failed_objects", "skipped_objects", "deletes_waiting", "deletes_to_approve")
            yield from (f"{at} counts {link[one]} {one}" for one in counts if link[one])
            path = f"/rules/{name}/links/{link['number']}"
            rows = self.deployment.asked("GET", f"{path}/open")["results"]
            yield from (f"{at} is open: {row['kind']} {row['key']} {row['status']} {row['code']}" for row in rows[:5])
            alone = sorted(target.keys() - source.keys())
            foreign = link["foreign_objects"]
            if rule["markers"] and foreign != len(alone):
                yield f"{at} has {foreign} foreign objects, and the listings {len(alone)}: {alone[:5]}"
            yield from self._overwritten(at, path, group)

    def _overwritten(self, at: str, path: str, group: Group) -> Iterator[str]:
        """What a link says that it has overwritten somebody had written."""
        rows = self.deployment.asked("GET", f"{path}/overwritten?amount=1000")["results"]
        written = {(one.key, one.etag) for some in self.journal.of(group.name).values() for one in some if one.etag}
        unsure = {one.key for some in self.journal.of(group.name).values() for one in some if not one.sure}
        for row in rows:
            if (row["key"], row["etag"]) not in written and row["key"] not in unsure:
                yield f"{at} has overwritten {row['key']} {row['etag']}, which nobody wrote"

    # --- what is left over --------------------------------------------------------------------------------------------

    def _uploads(self, traffic: Traffic) -> Iterator[str]:
        for group in self.groups:
            for place in group.places:
                for key, begun in self.stores.uploads(place.region, place.bucket, group.keys):
                    theirs = any(abs(begun - at) < 2 for at in self.writers.unheard.get((place.bucket, key), ()))
                    if not theirs and left_over(begun, traffic.uploads.get((place.bucket, key), []), self.kills):
                        yield f"an upload in parts to {place.bucket}/{key} is left over: {time.ctime(begun)}"

    def _logs(self) -> Iterator[str]:
        for member in self.deployment.members:
            for told in tracebacks(member.log.read_text(errors="replace") if member.log.exists() else ""):
                if not any(told.startswith(beginning) for beginning, _ in EXPLAINED):
                    yield f"a traceback in the log of {member.name}: {told}"


def tracebacks(log: str) -> list[str]:
    """The last lines of all tracebacks in a log."""
    found, lines = [], log.splitlines()
    for at, line in enumerate(lines):
        if TRACEBACK.search(line):
            indented = len(line) - len(line.lstrip())
            rest = (one for one in lines[at + 1 :] if not one.startswith(" " * (indented + 1)))
            found.append(next(rest, "cut off").strip())
    return found
