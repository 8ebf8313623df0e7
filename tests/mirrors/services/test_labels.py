"""Labels of mirrors: set by who may change them, shown, found by, kept at the destination."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from db.labels import with_labels
from jobs.models import Duty
from mirrors.models import Mirror
from mirrors.queries.certificates import parse_descriptor
from rbac.models import User
from tests.api import BODY, Api
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.views.test_pages import text

pytestmark = pytest.mark.django_db
V1 = "/service/replication/v1"
MIRRORS = f"{V1}/repositories/lake/mirrors"
MIRROR = f"{MIRRORS}/lake-eu"
PAGE = "/mirrors/lake-eu/"
SALES = {"team": "sales", "tier": "gold"}


def label(api: Api, **labels: str) -> dict[str, Any]:
    status, shown = api.call("PATCH", MIRROR, {"labels": labels})
    assert status == 200, shown
    return dict(shown)


def test_they_are_set_shown_recorded_and_told_to_the_destination(api: Api, lm: Deployment, head: str) -> None:
    assert api.call("GET", MIRROR)[1]["labels"] == {}
    assert label(api, **SALES)["labels"] == SALES
    event = AuditEvent.objects.get(subject="mirror/lake-eu", verb="change")
    assert (event.action, event.before["labels"], event.after["labels"]) == ("fs:MirrorRepository", {}, SALES)
    manage = Duty.objects.get(kind="manage").pk
    lm.run(manage)
    assert parse_descriptor(lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"]).labels == SALES
    assert label(api, team="ops")["labels"] == {"team": "ops"}
    assert label(api)["labels"] == {}


def test_without_labels_the_descriptor_is_as_before(lm: Deployment, head: str) -> None:
    lm.run(Duty.objects.get(kind="manage").pk)
    assert b"labels" not in lm.eu_store.objects[f"{NAMESPACE}/_lakemirror/mirror.json"]


@pytest.mark.parametrize("bad", [{"Team": "x"}, {"a": 7}, {"a": None}, ["a"], "a=b", {f"k{n}": "" for n in range(21)}])
def test_what_can_not_be_is_refused(api: Api, lm: Deployment, bad: Any) -> None:
    status, failure = api.call("PATCH", MIRROR, {"labels": bad})
    assert status == 400 and failure["field"] == "labels" and Mirror.objects.get().labels == {}


def test_a_mirror_is_created_with_labels(api: Api, lm: Deployment, head: str) -> None:
    Duty.objects.all().delete()
    Mirror.objects.all().delete()
    lm.eu.repositories.pop("lake-eu", None)
    status, shown = api.call("POST", MIRRORS, BODY | {"name": "lake-new", "labels": SALES})
    assert (status, shown["labels"]) == (201, SALES), shown


def test_lists_are_narrowed_by_them(api: Api, olga: Client, lm: Deployment, head: str) -> None:
    label(api, **SALES, zone="")

    def found(query: str) -> list[int]:
        lists = [api.call("GET", f"{where}?{query}")[1]["results"] for where in (MIRRORS, f"{V1}/mirrors")]
        return [len(results) for results in lists] + ["lake-eu" in text(olga.get(f"/mirrors/?{query}"))]

    for query in ("", "label=team=sales", "label=team", "label=team=sales&label=tier=gold", "label=zone=", "label="):
        assert found(query) == [1, 1, 1], query
    for query in ("label=team=sale", "label=owner", "label=team=sales&label=tier=x", "label=a%27b"):
        assert found(query)[:2] == [0, 0], query
    said = text(olga.get("/mirrors/?label=team=sales"))
    assert "Label: team=sales" in said
    assert b"label=team%3Dsales" in olga.get("/mirrors/").content
    rows = b"".join(olga.get("/mirrors/?format=csv").streaming_content).decode()
    assert "team=sales tier=gold zone" in rows


def test_a_key_is_no_path_into_a_value(lm: Deployment) -> None:
    Mirror.objects.update(labels={"a.b": "c", "a__b": "d"})
    for wanted, number in ((["a.b=c"], 1), (["a__b=d"], 1), (["a"], 0), (["a=b"], 0), (["a.b=\0"], 0)):
        assert with_labels(Mirror.objects.all(), wanted).count() == number, wanted


def test_the_page_shows_and_changes_them(olga: Client, lm: Deployment, head: str, teammate: User) -> None:
    form = olga.get(f"{PAGE}settings/").context["form"]
    assert form.initial["labels"] == ""
    sent = {name: value for name, value in form.initial.items() if value not in (None, False)}
    olga.post(f"{PAGE}settings/", sent | {"labels": "team=sales\ntier=gold"})
    assert Mirror.objects.get().labels == SALES
    shown = olga.get(PAGE)
    assert "team=sales" in text(shown) and b"/mirrors/?label=team%3Dsales" in shown.content
    form = olga.get(f"{PAGE}settings/").context["form"]
    assert form.initial["labels"] == "team=sales\ntier=gold"
    sent = {name: value for name, value in form.initial.items() if value not in (None, False)}
    wrong = olga.post(f"{PAGE}settings/", sent | {"labels": "Team=sales"})
    assert wrong.status_code == 400 and "is no key of a label" in text(wrong)
    assert Mirror.objects.get().labels == SALES


def test_who_may_only_look_does_not_label_a_mirror(lm: Deployment, teammate: User) -> None:
    assert Api(teammate).call("PATCH", MIRROR, {"labels": SALES})[0] == 403
