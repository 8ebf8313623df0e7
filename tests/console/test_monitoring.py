"""The dashboard and the alert rules in docs/monitoring: each query asks for what `/metrics` really gives."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from console.metrics.prometheus import gauges
from core.mirroring.states import State
from db import clock
from installations.models import Contact
from jobs.models import Duty
from mirrors.models import Mirror, Sweep
from notifications import rounds
from tests.cast import person
from tests.exports.test_beside import WHOLE
from tests.exports.test_pages import HEAD, OLD, an_export
from tests.mirrors.factories import fail, make_company

pytestmark = pytest.mark.django_db
FOLDER = Path(__file__).parents[2] / "docs" / "monitoring"
RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
DASHBOARD = json.loads((FOLDER / "grafana-dashboard.json").read_text())
ALERTS = [rule for group in RULES for rule in group["rules"]]
FUNCTIONS = {"deriv", "count", "max", "sum", "topk", "clamp_min", "changes", "time", "vector", "label_values"}
KEYWORDS = {"by", "on", "unless", "and", "or"}
TOKENS = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<range>\[\d+[smhd](?::\d+[smhd])?\])|(?P<name>[a-zA-Z_]\w*)|(?P<number>\d+(?:\.\d+)?)'
    r"|(?P<sign>=~|!~|!=|==|>=|<=|[-+*/%^=<>(){},])|(?P<space>\s+)|(?P<wrong>.)"
)


def queries() -> Iterator[tuple[str, str]]:
    """Where each stands, and what it asks."""
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


QUERIES = list(queries())


@pytest.fixture
def given(db: None) -> dict[str, set[str]]:
    """The labels of each metric, with something of every kind to tell of."""
    make_company()
    now = clock.now()
    fail("promote", 1, "no", now=now)
    failing = {"asked_at": now, "failing_since": now - timedelta(hours=1), "kind": "unreachable"}
    Contact.objects.update_or_create(region="us-east-1", service="lakefs", defaults=failing)
    late = {"behind_of": f"{HEAD}:{OLD}", "behind_commits": 2, "behind_since": now, "last_success_ref": OLD}
    an_export("good", name="daily", state="exported-successfully", **WHOLE | late)
    Duty.objects.create(kind=rounds.DUTY, subject=rounds.SUBJECT, queue="q", due_at=now, succeeded_at=now)
    Mirror.objects.filter(name="analytics-eu").update(follow_gc=True)
    Sweep.objects.create(mirror=Mirror.objects.get(name="analytics-eu"), began_at=now, looked_at=now, pins="p")
    viewer = person("scraper", "Viewers")
    labels: dict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families("".join(gauge.text() for gauge in gauges(viewer))):
        for sample in family.samples:  # the family of a counter has no "_total"
            labels[sample.name] |= set(sample.labels)
        labels[family.name] |= set()
    return labels | {"up": {"job", "instance"}}


def tokens(query: str) -> list[tuple[str, str]]:
    found = [(match.lastgroup or "", match[0]) for match in TOKENS.finditer(query)]
    return [one for one in found if one[0] != "space"]


def asked(query: str) -> tuple[dict[str, set[str]], set[str]]:
    """The metrics that it names, each with the labels that it matches; and all labels by which it groups or joins."""
    metrics: dict[str, set[str]] = defaultdict(set)
    grouped: set[str] = set()
    metric, inside, opened = "", "", ""
    for (kind, word), (_, after) in zip(tokens(query), [*tokens(query)[1:], ("", "")], strict=True):
        assert kind != "wrong", f"{word!r} in {query}"
        if word in "({":
            inside, opened = (word if word == "{" else inside if inside in KEYWORDS else ""), opened + word
        elif word in ")}" and kind == "sign":
            assert opened.endswith({")": "(", "}": "{"}[word]), query
            inside, opened = "", opened[:-1]
        elif kind == "name" and inside == "{":
            metrics[metric].add(word)
        elif kind == "name" and inside in KEYWORDS and inside:
            grouped.add(word)
        elif word in KEYWORDS:
            inside = word if word in ("by", "on") else ""
        elif kind == "name" and after in ("(", "by"):
            assert word in FUNCTIONS, f"{word} in {query}"
        elif kind == "name" and not (query.startswith("label_values") and metrics):
            metric = word
            metrics[metric] |= set()
        elif kind == "name":
            grouped.add(word)
    assert not opened, query
    return metrics, grouped


@pytest.mark.parametrize(("where", "query"), QUERIES, ids=[f"{where}: {query[:40]}" for where, query in QUERIES])
def test_a_query_asks_for_what_there_is(given: dict[str, set[str]], where: str, query: str) -> None:
    metrics, grouped = asked(query)
    assert metrics or query == "vector(0)"
    assert set(metrics) <= set(given), where
    for metric, labels in metrics.items():
        assert labels <= given[metric], (where, metric)
    assert grouped <= set().union(*(given[metric] for metric in metrics)), where


def test_the_check_notices_what_there_is_not(given: dict[str, set[str]]) -> None:
    assert set(asked("max(lakemirror_lag)")[0]) - set(given)
    assert (
        asked('lakemirror_outage_seconds{mirror="x"}')[0]["lakemirror_outage_seconds"]
        - given["lakemirror_outage_seconds"]
    )
    assert asked("sum by (branch) (lakemirror_mirror_paused)")[1] - given["lakemirror_mirror_paused"]
    for wrong in ("sum(lakemirror_mirror_paused", "rates(lakemirror_mirror_paused)", "lakemirror_mirror_paused § 1"):
        with pytest.raises(AssertionError):
            asked(wrong)


def test_states_that_are_matched_exist(given: dict[str, set[str]]) -> None:
    known = {"creating", "active", "stopped", "frozen", "lakemirror", *(state.value for state in State)}
    for _, query in QUERIES:
        for matched in re.findall(r'(?:state|job)=~?"([^"]*)"', query):
            assert set(matched.split("|")) <= known, query


@pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])
def test_an_alert_says_what_is_wrong_by_labels_that_it_has(given: dict[str, set[str]], rule: dict[str, Any]) -> None:
    metrics, grouped = asked(rule["expr"])
    kept = grouped if " by (" in rule["expr"] else set().union(*(given[metric] for metric in metrics))
    told = rule["annotations"]["summary"] + rule["annotations"]["description"]
    assert set(re.findall(r"\$labels\.(\w+)", told)) <= kept
    assert rule["labels"]["severity"] in ("critical", "warning")


def test_panels_stand_beside_each_other_and_legends_have_their_labels(given: dict[str, set[str]]) -> None:
    places = set[tuple[int, int]]()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places and max(x for x, _ in cells) < 24, panel["title"]
        places |= cells
        for target in panel.get("targets", []):
            metrics, grouped = asked(target["expr"])
            kept = grouped if " by (" in target["expr"] else set().union(*(given[metric] for metric in metrics))
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, panel["title"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_prometheus_itself_takes_the_rules_where_it_is_installed() -> None:
    if promtool := shutil.which("promtool"):
        subprocess.run([promtool, "check", "rules", str(FOLDER / "alerts.yaml")], check=True, timeout=60)
    assert {rule["alert"] for rule in ALERTS} >= {"MirrorBehind", "RegionDown", "ExportFailed", "NobodyWorks"}
