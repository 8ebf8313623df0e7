"""Commands of replication rules against the application, on places that are empty."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from core.replicating.states import OpenStatus
from rbac.models import User
from replication.models import Link, OpenObject, Rule
from tests.cli.speaking import Terminal
from tests.mirrors.harness import Deployment
from tests.replication.factories import a_rule, in_trouble

pytestmark = pytest.mark.django_db
CREATE = ("rule", "create", "logs", "--source", "us-east-1", "s3://src/in", "--target", "eu-west-1", "s3://out/in")


@pytest.fixture
def olgas(lm: Deployment, terminal_of: Callable[[User], Terminal], owner: User) -> Terminal:
    """An administrator's terminal."""
    return terminal_of(owner)


def test_a_rule_is_created_shown_edited_and_deleted(olgas: Terminal) -> None:
    assert olgas("rule", "list").stdout == "No replication rules.\n"
    more = ("--target", "ap-southeast-2", "s3://far", "--workers", "4", "--bytes-per-second", "1000000")
    made = olgas(*CREATE, *more, "--scan-every", "15m", "--no-existing", "--label", "team=sales")
    assert made.exit_code == 0 and made.stdout.startswith("logs: Comparing\n"), made.output
    rule = Rule.objects.get()
    assert (rule.existing, rule.new, rule.scan_every, rule.labels) == (False, True, 900, {"team": "sales"})
    assert list(rule.links.values_list("uri", "workers", "bytes_per_second")) == [
        ("s3://out/in", 4, 10**6),
        ("s3://far", 4, 10**6),
    ]
    shown = olgas("rule", "show", "logs")
    assert shown.exit_code == 0 and "Source       s3://src/in (us-east-1)" in shown.stdout
    assert "Copies       new objects" in shown.stdout and "Compared     every 15 min" in shown.stdout
    listed = olgas("rule", "list", "--label", "team").stdout
    assert listed.startswith("1 rule.") and "logs  Comparing  s3://src/in (us-east-1)  2" in listed
    assert olgas("rule", "edit", "logs", "--existing", "--label", "tier=gold", "--remove-label", "team").exit_code == 0
    rule.refresh_from_db()
    assert (rule.existing, rule.labels) == (True, {"tier": "gold"})
    assert olgas("rule", "edit", "logs").exit_code == 2
    assert olgas("rule", "delete", "logs", typed="n\n").exit_code == 1
    gone = olgas("rule", "delete", "logs", "--yes")
    assert (gone.exit_code, gone.stdout) == (0, "Rule logs deleted. All objects stay.\n")
    assert olgas("rule", "show", "logs").exit_code == 4 and olgas("rule", "delete", "logs", "--yes").exit_code == 4


def test_a_rule_comes_from_a_file_and_options_come_on_top(olgas: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "rule.yaml"
    file.write_text(
        "name: other\nsource: {region: us-east-1, uri: s3://src/in}\n"
        "targets:\n- {region: eu-west-1, uri: s3://out/in, workers: 2}\nscan_every: 60\n"
    )
    assert olgas("rule", "create", "logs", "-f", str(file), "--scan-every", "1h").exit_code == 0
    rule = Rule.objects.get()
    assert (rule.name, rule.scan_every, rule.links.get().workers) == ("logs", 3600, 2)
    file.write_text("overwrite: true\nsource: {region: us-east-1, uri: s3://src/b}\n")
    two = ("--target", "eu-west-1", "s3://out/b")
    with mock.patch("replication.services.places.check_empty") as looked:
        assert olgas("rule", "create", "two", "-f", str(file), *two).exit_code == 0
        assert not looked.called
        three = ("--source", "us-east-1", "s3://src/c", "--target", "eu-west-1", "s3://out/c", "--no-overwrite")
        assert olgas("rule", "create", "three", "-f", str(file), *three).exit_code == 0
        assert looked.called
    file.write_text("- no\n")
    assert olgas("rule", "create", "more", "-f", str(file)).exit_code == 2
    file.write_text("{")
    assert olgas("rule", "create", "more", "-f", str(file)).exit_code == 2
    assert olgas("rule", "create", "more").exit_code == 2
    assert olgas("rule", "create", "more", "-f", str(file), "--workers", "2").exit_code == 2


def test_the_apis_words_reach_the_terminal(olgas: Terminal) -> None:
    inside = olgas("rule", "create", "logs", *CREATE[3:6], "--target", "eu-west-1", "s3://src/in/below")
    assert inside.exit_code == 2 and "lies in the source" in inside.stderr
    assert olgas(*CREATE).exit_code == 0
    taken = olgas(*CREATE)
    assert taken.exit_code == 5 and "a rule named 'logs' exists" in taken.stderr


def test_what_a_link_did_not_copy_is_shown_with_the_first_names(olgas: Terminal) -> None:
    rule = a_rule("strangers")
    rule.links.update(foreign_objects=1204, foreign_keys=["a", "b[c]", "d", "e"])
    assert (
        "1,204 at the target that it did not copy, the first: a, b[c], d\n" in olgas("rule", "show", "strangers").stdout
    )


def test_trouble_is_told_and_ends_with_1(olgas: Terminal) -> None:
    in_trouble()
    shown = olgas("rule", "show", "orders")
    assert shown.exit_code == 1 and "1 of 2 targets is blocked" in shown.stdout, shown.output
    assert "2 × TargetRefused: the target's store refuses to take it" in shown.stdout
    assert "at most 16 at once, 95.4 MB/s" in shown.stdout
    none = olgas("rule", "failures", "orders")
    assert (none.exit_code, none.stdout) == (0, "No failed objects.\n")
    failed = olgas("rule", "failures", "orders", "--link", "2", "--limit", "1")
    assert failed.exit_code == 1 and "metadata is too large" in failed.stdout and "There are more." in failed.stdout
    below = olgas.env and olgas("rule", "failures", "orders", "--link", "2", "--prefix", "é", "--json")
    assert below and [one["key"] for one in json.loads(below.stdout)["results"]] == ["é/2"]


def test_rules_and_links_are_run(olgas: Terminal) -> None:
    rule = in_trouble()
    second = rule.links.get(number=2)
    assert "Paused" in olgas("rule", "pause", "orders", "--reason", "new disks", "--for", "4h").stdout
    refused = olgas("rule", "scan", "orders")
    assert refused.exit_code == 5 and "Resume it first" in refused.stderr
    assert olgas("rule", "resume", "orders").exit_code == 0
    assert olgas("rule", "scan", "orders").stdout == "source and targets are compared now\n"
    assert olgas("rule", "pause", "orders", "--link", "2").exit_code == 0
    rule.refresh_from_db()
    second.refresh_from_db()
    assert (rule.paused, rule.scan_wanted, second.paused) == (False, True, True)
    assert olgas("rule", "resume", "orders", "--link", "2").exit_code == 0
    assert olgas("rule", "limits", "orders", "--link", "2", "--workers", "3", "--bytes-per-second", "0").exit_code == 0
    second.refresh_from_db()
    assert (second.workers, second.bytes_per_second) == (3, None)
    assert olgas("rule", "limits", "orders").exit_code == 2
    one = OpenObject.objects.filter(link=second, status=OpenStatus.FAILED.value).first()
    assert one is not None
    told = olgas("rule", "retry", "orders", "--item", str(one.pk))
    assert told.stdout == "Trying 1 object again now.\n"
    assert olgas("rule", "retry", "orders", "--link", "2", "--code", "TargetRefused").stdout.startswith("Trying 1 obj")
    assert olgas("rule", "retry", "orders", "--all").stdout == "Trying 5 objects again now.\n"
    for wrong in ((), ("--all", "--code", "x")):
        assert olgas("rule", "retry", "orders", *wrong).exit_code == 2


def test_who_lacks_a_right_is_told_which(
    lm: Deployment, terminal_of: Callable[[User], Terminal], teammate: User
) -> None:
    a_rule()
    toms = terminal_of(teammate)
    assert toms("rule", "show", "logs").exit_code == 0
    denied = toms("rule", "pause", "logs")
    assert denied.exit_code == 3 and "fs:OperateReplicationRule on arn:lakefs:fs:::replication/logs" in denied.stderr
    assert Link.objects.count() == 1
