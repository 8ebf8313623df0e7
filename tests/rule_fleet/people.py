"""People who put, overwrite, delete, tag and lock objects at all places, and who pause, limit, retry and decide what
waits for them."""

from __future__ import annotations

import csv
import io
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import requests
import urllib3
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from tests.rule_fleet import contents
from tests.rule_fleet.deployment import Deployment
from tests.rule_fleet.events import Events
from tests.rule_fleet.journal import Deed, Journal, Kind
from tests.rule_fleet.layout import FOREIGN, STAYS, Group, Place
from tests.rule_fleet.stores import Stores

FAILURES = (BotoCoreError, ClientError, urllib3.exceptions.HTTPError, OSError)
NOT_DONE = (EndpointConnectionError, ConnectTimeoutError)
REFUSED = range(400, 500)
LOCKED_SECONDS = (30, 150)
BURST_SHARE, BURST = 0.01, 40


class Writers:
    """People at the stores. Of one object at one place they write one after the other."""

    def __init__(
        self, stores: Stores, groups: list[Group], journal: Journal, events: Events, chance: random.Random
    ) -> None:
        self.stores, self.groups, self.journal, self.events = stores, groups, journal, events
        self.random = chance
        self.counts: Counter[str] = Counter()
        self.cut_off: dict[str, tuple[Place, str]] = {}
        """Uploads in parts that were not put together, by their ids."""
        self.unheard: dict[tuple[str, str], list[float]] = defaultdict(list)
        """When somebody wanted to begin one, by bucket and key, and heard no answer."""
        self._locks: dict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)

    def begin(self) -> None:
        """Something that stays is at each place where people write, and something at those that only LakeMirror has."""
        for group in self.groups:
            for place in group.writers:
                self.put(group, place, STAYS)
            for place in set(group.places) - set(group.writers):
                self.put(group, place, f"{FOREIGN}/{place.bucket}")

    def step(self, chance: random.Random) -> None:
        """Somebody does something, or much at once."""
        group = chance.choice(self.groups)
        place = chance.choice(group.writers)
        if chance.random() < BURST_SHARE:
            for key in chance.sample(group.keys, len(group.keys)):
                self.put(group, place, key, ("small", 200))
            for number in range(BURST):
                self.put(group, place, f"burst/{number:03}", ("small", 200))
            return
        kinds = [self._put] * 8 + [self._delete] * 5 + [self._retag] * 2 + ([self._lock] * 2 if group.locks else [])
        chance.choice(kinds)(group, place, chance)

    # --- writes -------------------------------------------------------------------------------------------------------

    def _put(self, group: Group, place: Place, chance: random.Random) -> None:
        self.put(group, place, chance.choice(group.keys), contents.kind_of(chance), chance)

    def put(
        self,
        group: Group,
        place: Place,
        key: str,
        size: tuple[str, int] = ("small", 200),
        chance: random.Random | None = None,
    ) -> None:
        """One write."""
        chance = chance or random.Random(key)
        kind, length = size
        with self._locks[place.bucket, key]:
            deed = self.journal.begin(Kind.PUT, group, place, key)
            told: dict[str, Any] = {"Metadata": {"soak": str(deed.number)}, "ContentType": f"text/x-{kind}"}
            if chance.random() < 0.3:
                told["Tagging"] = f"kind={kind}&by={chance.choice('abc')}"
            if group.locks and chance.random() < 0.1:
                told |= {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": _until(chance)}
            data = contents.made(deed.number, key, length)
            act = self._in_parts if kind == "parts" else self._whole
            self._acknowledged(deed, lambda: act(deed, data, told))
        if deed.ended:
            self.counts[f"{kind} objects"] += 1
            self.events.add(place, key, "ObjectCreated:Put")

    def _whole(self, deed: Deed, data: bytes, told: dict[str, Any]) -> Any:
        s3 = self.stores.s3(deed.place.region)
        return s3.put_object(Bucket=deed.place.bucket, Key=deed.key, Body=data, **told)

    def _in_parts(self, deed: Deed, data: bytes, told: dict[str, Any]) -> Any:
        s3, at = self.stores.s3(deed.place.region), {"Bucket": deed.place.bucket, "Key": deed.key}
        began = time.time()
        try:
            upload = s3.create_multipart_upload(**at, **told)["UploadId"]
        except FAILURES:
            self.unheard[deed.place.bucket, deed.key] += [began, time.time()]
            raise
        self.cut_off[upload] = deed.place, deed.key
        parts = []
        for number, low in enumerate(range(0, len(data), contents.PART), 1):
            piece = data[low : low + contents.PART]
            answer = s3.upload_part(**at, UploadId=upload, PartNumber=number, Body=piece)
            parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        deed.began = time.time()  # it counts from when it is put together
        answer = s3.complete_multipart_upload(**at, UploadId=upload, MultipartUpload={"Parts": parts})
        self.cut_off.pop(upload, None)
        return answer

    def _acknowledged(self, deed: Deed, act: Callable[[], Any]) -> None:
        """Note what the store said, or that it said nothing."""
        try:
            answer = act()
        except NOT_DONE:
            self.counts["writes that nobody heard"] += 1
            self.journal.drop(deed)
            return
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in REFUSED:
                self.counts["refused writes"] += 1
                self.journal.drop(deed)
                return
            deed.ended = time.time()
            self.counts["unanswered writes"] += 1
        except FAILURES:
            deed.ended = time.time()
            self.counts["unanswered writes"] += 1
        else:
            deed.version, deed.etag = answer.get("VersionId", ""), answer.get("ETag", "").strip('"')
            deed.ended, deed.sure = time.time(), True

    # --- deletions ----------------------------------------------------------------------------------------------------

    def _delete(self, group: Group, place: Place, chance: random.Random) -> None:
        key = chance.choice(group.keys)
        at = {"Bucket": place.bucket, "Key": key}
        s3 = self.stores.s3(place.region)
        with self._locks[place.bucket, key]:
            looked = time.time()
            try:
                there = s3.head_object(**at)
            except FAILURES:
                return
            deed = self.journal.begin(Kind.DELETE, group, place, key)
            deed.looked, deed.hit = looked, int(there["Metadata"].get("soak", 0))
            self._acknowledged(deed, lambda: s3.delete_object(**at))
        if deed.ended:
            self.counts["deletions"] += 1
            self.events.add(place, key, "ObjectRemoved:Delete")

    # --- changes of what lies beside the bytes ------------------------------------------------------------------------

    def _retag(self, group: Group, place: Place, chance: random.Random) -> None:
        key = chance.choice(group.keys)
        tags = [{"Key": name, "Value": chance.choice("xyz")} for name in ("by", "team")[: chance.randint(0, 2)]]
        s3 = self.stores.s3(place.region)
        with self._locks[place.bucket, key], suppress(*FAILURES):
            s3.put_object_tagging(Bucket=place.bucket, Key=key, Tagging={"TagSet": tags})
            self.counts["tags"] += 1
            self.events.add(place, key, "ObjectCreated:PutTagging")

    def _lock(self, group: Group, place: Place, chance: random.Random) -> None:
        key, s3 = chance.choice(group.keys), self.stores.s3(place.region)
        at = {"Bucket": place.bucket, "Key": key}
        with self._locks[place.bucket, key], suppress(*FAILURES):
            if chance.random() < 0.5:
                s3.put_object_legal_hold(**at, LegalHold={"Status": chance.choice(("ON", "OFF"))})
                self.events.add(place, key, "ObjectCreated:PutLegalHold")
            else:
                until = {"Mode": "GOVERNANCE", "RetainUntilDate": _until(chance)}
                s3.put_object_retention(**at, Retention=until, BypassGovernanceRetention=True)
                self.events.add(place, key, "ObjectCreated:PutRetention")
            self.counts["locks"] += 1

    def clear_up(self) -> None:
        """Whoever was cut off gives up what they had uploaded. An upload whose id nobody heard stays."""
        for upload, (place, key) in list(self.cut_off.items()):
            with suppress(ClientError):
                s3 = self.stores.s3(place.region)
                s3.abort_multipart_upload(Bucket=place.bucket, Key=key, UploadId=upload)

    def let_go(self) -> None:
        """No object is held any more, not even at a target."""
        for place in (place for group in self.groups if group.locks for place in group.places):
            s3 = self.stores.s3(place.region)
            for key in self.stores.listed(place.region, place.bucket):
                at = {"Bucket": place.bucket, "Key": key}
                if s3.head_object(**at).get("ObjectLockLegalHoldStatus") == "ON":
                    s3.put_object_legal_hold(**at, LegalHold={"Status": "OFF"})
                    self.events.add(place, key, "ObjectCreated:PutLegalHold")


def _until(chance: random.Random) -> datetime:
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=chance.randint(*LOCKED_SECONDS))


class Operators:
    """People at LakeMirror's API. What nobody answers is not done."""

    def __init__(self, deployment: Deployment, groups: list[Group], journal: Journal, chance: random.Random) -> None:
        self.deployment, self.journal, self.random = deployment, journal, chance
        self.group_of = {rule: group for group in groups for rule in group.rules}
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def step(self) -> None:
        """Somebody does something."""
        acts = [self._pause, self._pause, self._limits, self._retry, self._scan, self._resync]
        acts += [self.decide] * 3
        with suppress(requests.RequestException):
            self.random.choice(acts)()

    def _link(self) -> tuple[str, dict[str, Any]]:
        rule = self.random.choice(self.deployment.rules())
        return rule["name"], self.random.choice(rule["links"])

    def _asked(self, what: str, path: str, body: Any = None) -> None:
        self.deployment.asked("POST", path, body)
        self.counts[what] += 1

    def _pause(self) -> None:
        """One link rests at a time."""
        links = [(rule["name"], link) for rule in self.deployment.rules() for link in rule["links"]]
        paused = [(name, link) for name, link in links if link["paused"]]
        name, link = self.random.choice(paused or links)
        verb = "resume" if paused else "pause"
        self._asked(verb, f"/rules/{name}/links/{link['number']}/{verb}", {})

    def _limits(self) -> None:
        name, link = self._link()
        told: dict[str, Any] = {"workers": self.random.choice((1, 4, 16))}
        told["bytes_per_second"] = self.random.choice((None, None, 2_000_000))
        told["objects_per_second"] = self.random.choice((None, None, 20))
        told["store_bytes_per_second"] = self.random.choice((None, 20_000_000))
        self._asked("limits", f"/rules/{name}/links/{link['number']}/limits", told)

    def _retry(self) -> None:
        name, link = self._link()
        self._asked("retry", f"/rules/{name}/links/{link['number']}/retry", {"all": True})

    def _scan(self) -> None:
        self._asked("compare", f"/rules/{self._link()[0]}/scan", {})

    def _resync(self) -> None:
        name, link = self._link()
        what = "missing" if self.group_of[name].both_ways else self.random.choice(("missing", "all"))
        self._asked("resync", f"/rules/{name}/links/{link['number']}/resync", {"what": what})

    def decide(self, *, approve: bool = False) -> None:
        """Whatever waits is approved, some of it rejected. Raises RequestException."""
        for name, group in self.group_of.items():
            for one in self.deployment.asked("GET", f"/rules/{name}/approvals?state=waiting")["results"]:
                verb = "approve" if approve or group.versions or self.random.random() < 0.8 else "reject"
                if verb == "reject":
                    self.journal.reject(group.name, self._keys(name, one))
                self._asked(verb, f"/rules/{name}/approvals/{one['id']}/{verb}", {})

    def _keys(self, rule: str, approval: dict[str, Any]) -> list[str]:
        """Those that are rejected with it."""
        rows = self.deployment.asked("GET", f"/rules/{rule}/approvals/{approval['id']}?format=csv")
        return sorted({row["key"] for row in csv.DictReader(io.StringIO(rows))} | set(approval["first_keys"]))

    def settle(self) -> list[dict[str, Any]]:
        """Everything goes on, what waits is approved, what is skipped is tried once more, and all is compared; the
        rules. Raises RequestException."""
        self.decide(approve=True)
        rules = self.deployment.rules()
        for rule in rules:
            for link in rule["links"]:
                at = f"/rules/{rule['name']}/links/{link['number']}"
                if link["paused"]:
                    self._asked("resume", f"{at}/resume", {})
                if link["skipped_objects"] or link["failed_objects"]:
                    self._asked("retry", f"{at}/retry", {"all": True})
                if any(link[name] for name in ("bytes_per_second", "objects_per_second", "store_bytes_per_second")):
                    none = {"bytes_per_second": None, "objects_per_second": None, "store_bytes_per_second": None}
                    self._asked("limits", f"{at}/limits", {"workers": 8, **none})
        return rules

    def watch(self, rules: list[dict[str, Any]]) -> None:
        """Nobody has emptied a place, or taken a pin away: no link may say so."""
        for rule in rules:
            for link in rule["links"]:
                for since, why in (("stale_since", "stale_message"), ("frozen_since", "frozen_message")):
                    if link[since]:
                        told = f"{rule['name']}/{link['number']} is {since[:-6]}: {link[why]}"
                        self.problems += [told] if told not in self.problems else []
