"""Rules with links and open objects, as the engine leaves them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from core.replicating.passes import PassKind, PassState, ReportRow, pack
from core.replicating.states import Code, Health, OpenStatus
from db import clock
from replication.models import Link, OpenCount, OpenObject, Pass, PassRows, Rule
from replication.transitions import duties, ledger, shards

NOW = datetime.now(UTC)
"""When this was read: what tests give as a time that has been."""


def a_rule(name: str = "logs", *targets: str, **more: Any) -> Rule:
    """A rule from us-east-1 whose places were compared a minute ago, with a link for each target, or one."""
    fields = {
        "region": "us-east-1",
        "uri": f"s3://src-{name}/in",
        "full_began_at": clock.now() - timedelta(seconds=70),
        "full_ended_at": clock.now() - timedelta(seconds=60),
        "full_objects": 1204,
        "full_bytes": 3 << 30,
        "created_at": clock.now() - timedelta(days=1),
        "changed_at": clock.now(),
    }
    rule = Rule.objects.create(name=name, **fields | more)
    for number, uri in enumerate(targets or (f"s3://dst-{name}/in",), 1):
        a_link(rule, number, uri)
    shards.begin(rule, clock.now())
    duties.ensure(rule)
    return rule


def a_link(rule: Rule, number: int = 1, uri: str = "s3://dst/in", **more: Any) -> Link:
    """One to eu-west-1 that has copied something."""
    fields = {"region": "eu-west-1", "sent_objects": 1100, "sent_bytes": 2 << 30, "sent_at": clock.now()}
    fields |= {"compared_at": rule.full_ended_at}
    return Link.objects.create(rule=rule, number=number, uri=uri, **fields | more)


def open_object(link: Link, key: str, status: OpenStatus = OpenStatus.PENDING, **more: Any) -> OpenObject:
    """An object that is open on a link, and counted."""
    fields = {
        "size": 100,
        "etag": "e",
        "since": clock.now() - timedelta(minutes=5),
        "next_try": clock.now() + timedelta(hours=1),
    }
    row = OpenObject.objects.create(link=link, key=key.encode(), status=status.value, **fields | more)
    count, _ = OpenCount.objects.get_or_create(link=link, status=row.status, code=row.code)
    count.number, count.bytes = count.number + 1, count.bytes + row.size
    count.save()
    return row


def in_trouble() -> Rule:
    """A rule with two targets: one is blocked, at the other objects have failed, others wait."""
    rule = a_rule("orders", "s3://dst/orders", "s3://other/orders", labels={"team": "sales"})
    blocked, failing = rule.links.order_by("number")
    since = clock.now() - timedelta(minutes=12)
    said = {"health_code": Code.TARGET_DENIED.value, "health_message": "s3 answered 403 to put: access denied"}
    Link.objects.filter(pk=blocked.pk).update(
        health=Health.BLOCKED.value,
        health_since=since,
        probe_at=clock.now() + timedelta(seconds=50),
        oldest_at=since,
        **said,
    )
    open_object(blocked, "a/1", code=Code.TARGET_DENIED.value)
    refused = {"code": Code.TARGET_REFUSED.value, "detail": "metadata is too large", "attempts": 1}
    for key in ("a b+c%2F#?.csv", "é/2"):
        open_object(failing, key, OpenStatus.FAILED, **refused)
    open_object(failing, "deep", OpenStatus.SKIPPED, code=Code.SOURCE_ARCHIVED.value)
    open_object(failing, "waits")
    Link.objects.filter(pk=failing.pk).update(oldest_at=since, bytes_per_second=10**8)
    return rule


def counts_of(link: Link) -> dict[tuple[str, str], tuple[int, int]]:
    """The counts of a link, as they are kept; those of nothing left out."""
    rows = OpenCount.objects.filter(link=link).values_list("status", "code", "number", "bytes")
    return {(status, code): (number, size) for status, code, number, size in rows if number or size}


def assert_counted(link: Link) -> None:
    """The counts are those of the rows."""
    assert counts_of(link) == dict(ledger.real_counts(link.pk))


def a_pass(rule: Rule, **more: Any) -> Pass:
    """A dry run of all targets that has found something to copy."""
    rows = [ReportRow(1, "a b+c%2F#?.csv", "copy", 100), ReportRow(1, "k" * 1024, "skip", 7, "KeyTooLong")]
    fields = {
        "kind": PassKind.DRY_RUN.value,
        "state": PassState.COMPLETED.value,
        "region": rule.region,
        "who": "olga",
        "began_at": clock.now() - timedelta(minutes=5),
        "read_at": clock.now(),
        "ended_at": clock.now(),
        "looked_at": 1205,
        "actions": {"1": {"copy": [1, 100], "equal": [1203, 3 << 30], "skip:KeyTooLong": [1, 7]}},
        "rows": len(rows),
    }
    made = Pass.objects.create(rule=rule, **fields | more)
    PassRows.objects.create(of=made, number=len(rows), rows=pack(rows))
    return made
