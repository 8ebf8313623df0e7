"""Repairing a commit: the plan tells the truth and changes nothing, running it looks for exactly what it needs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.mirroring.states import State
from mirrors.models import Blocker, Commit, Mirror, MirrorCommit
from mirrors.status.mirror import brief_statuses
from rbac.models import User
from tests.api import Api
from tests.mirrors.factories import block, make_company
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)

MIRROR = "/mirrors/analytics-eu/"
COMMITS = "repositories/analytics/mirrors/analytics-eu/commits"


@pytest.fixture
def company(lm: Deployment) -> dict[str, Mirror]:
    """`nightly orders load` lacks four objects in three ways; another commit, that it does not need, lacks one."""
    made = make_company()
    mirror, now = made["analytics-eu"], datetime.now(UTC)
    blocked = Commit.objects.get(message="nightly orders load")
    block(mirror, blocked, "users/a", now=now, ago=60, reason="etag-differs")
    block(mirror, blocked, "users/b", now=now, ago=60, gone_at_source=True)
    block(mirror, Commit.objects.get(message="model 42"), "m/1", now=now, ago=60)
    return made


def repair(api: Api, message: str, body: Any = None) -> tuple[int, Any]:
    return api.call("POST", f"/service/replication/v1/{COMMITS}/{sha_of(message)}/repair", body or {})


def sha_of(message: str) -> str:
    return Commit.objects.get(message=message).sha


def page_of(message: str) -> str:
    return f"{MIRROR}commits/{sha_of(message)}/repair/"


def looks() -> dict[str, datetime]:
    return dict(Blocker.objects.values_list("path", "look_at"))


def test_a_dry_run_tells_who_brings_what_and_changes_nothing(api: Api, company: Any) -> None:
    before = looks()
    status, plan = repair(api, "nightly orders load", {"dry_run": True})
    assert status == 200
    found = [(step["way"], step["kind"], step["reason"], step["number"]) for step in plan["steps"]]
    assert found == [
        ("awaited", "object", "missing", 3),
        ("mended", "object", "etag-differs", 1),
        ("gone", "object", "gone-at-source", 1),
    ]
    assert plan["requests"] == {"head": 5, "head_at_source_at_most": 5, "get": 0, "records": 0}
    assert plan["steps"][0]["bytes"] == 3 * 20_100_000 and "replication" in plan["steps"][0]["fix"]
    assert looks() == before
    assert not MirrorCommit.objects.filter(urgency__gt=0).exists()
    assert not AuditEvent.objects.filter(actor="olga").exists()


def test_an_object_that_several_ranges_need_is_one_object(api: Api, company: Any) -> None:
    row = Blocker.objects.filter(mirror=company["analytics-eu"], reason="missing", kind="object").first()
    assert row is not None
    before = repair(api, "nightly orders load", {"dry_run": True})[1]
    commit = MirrorCommit.objects.get(mirror=row.mirror, commit__sha=sha_of("nightly orders load"))
    row.pk, row.holder_id = None, "f" * 64
    row.save()
    commit.waits_for = [*commit.waits_for, row.holder_id]
    commit.save()
    after = repair(api, "nightly orders load", {"dry_run": True})[1]
    assert (after["steps"], after["requests"]) == (before["steps"], before["requests"])
    assert repair(api, "nightly orders load")[1]["blockers"] == 5


def test_records_that_are_still_to_be_copied_are_ours_to_bring(api: Api, company: Any) -> None:
    plan = repair(api, "week 12", {"dry_run": True})[1]
    assert [(step["way"], step["number"]) for step in plan["steps"]] == [("copied", 4)]
    assert plan["requests"]["records"] == 4


def test_running_looks_for_what_this_commit_needs_alone_and_puts_it_first(api: Api, company: Any) -> None:
    before = looks()
    status, told = repair(api, "nightly orders load")
    assert (status, told["blockers"], told["prioritised"]) == (202, 5, True)
    after = looks()
    assert {path for path in after if after[path] != before[path]} == {path for path in before if path[0] in "ou"} - {
        "orders/hour=9/part-0.parquet"
    }
    assert MirrorCommit.objects.get(commit__sha=told["commit"], mirror=company["analytics-eu"]).urgency == 1
    audited = AuditEvent.objects.get(after__retry_blockers__commit=told["commit"])
    assert (audited.actor, audited.after["blockers"]) == ("olga", 5)


def test_running_it_again_is_the_same_again(api: Api, company: Any) -> None:
    first, second = (repair(api, "nightly orders load") for _ in range(2))
    assert first == second


def test_what_an_ancestor_lacks_is_part_of_the_plan(api: Api, company: Any) -> None:
    assert repair(api, "returns", {"dry_run": True})[1]["requests"]["head"] == 5


def test_a_commit_that_is_there_needs_nothing(api: Api, company: Any) -> None:
    plan = repair(api, "f5", {"dry_run": True})[1]
    assert (plan["steps"], plan["requests"]["head"], plan["at_least"]) == ([], 0, False)
    assert repair(api, "f5")[1]["prioritised"] is False


@pytest.mark.parametrize(("body", "status"), [({"dry_run": "perhaps"}, 400), ({"dry": True}, 400), ([], 400)])
def test_a_body_that_is_none_is_refused(api: Api, company: Any, body: Any, status: int) -> None:
    path = f"/service/replication/v1/{COMMITS}/{sha_of('returns')}/repair"
    assert api.call("POST", path, body)[0] == status
    assert api.call("POST", path.replace(sha_of("returns"), "0" * 64), {})[0] == 404


def test_who_may_look_may_plan_and_not_run(teammate: User, outsider: User, company: Any) -> None:
    assert repair(Api(teammate), "returns", {"dry_run": True})[0] == 200
    assert repair(Api(teammate), "returns")[0] == 403
    assert repair(Api(outsider), "returns", {"dry_run": True})[0] == 403


def test_the_cost_of_a_plan_does_not_grow_with_what_is_missing(
    api: Api, company: Any, django_assert_max_num_queries: Any
) -> None:
    commit, now = Commit.objects.get(message="nightly orders load"), datetime.now(UTC)
    for number in range(40):
        block(company["analytics-eu"], commit, f"more/{number}", now=now, ago=60)
    with django_assert_max_num_queries(27):
        assert repair(api, "nightly orders load", {"dry_run": True})[1]["requests"]["head"] == 45


# The page


def test_the_page_says_the_same_without_scripts(olga: Client, company: Any) -> None:
    assert "Plan repair" in text(olga.get(f"{MIRROR}commits/{sha_of('nightly orders load')}/"))
    said = text(olga.get(page_of("nightly orders load")))
    for words in (
        "Awaiting replication 3 objects have not reached eu-west-1 (57.5",
        "Needs you 1 object has other content",
        "Gone 1 object is missing in us-east-1 too",
        "Check again checks 5 objects in eu-west-1 now (5 requests",
        "aws s3 cp s3://",
    ):
        assert words in said
    answer = olga.post(page_of("nightly orders load"), {"back": MIRROR}, follow=True)
    assert "Checking 5 objects again now;" in text(answer)


def test_the_page_offers_what_we_can_do_ourselves_before_what_is_copied_by_hand(olga: Client, company: Any) -> None:
    mirror, page = company["analytics-eu"], page_of("nightly orders load")
    said = text(olga.get(page))
    assert said.index("Bring all is for the whole mirror") < said.index("Copy them yourself")
    assert "Replace writes, once, over 1 object with other content, where the source has what the commit says" in said
    html = olga.get(page).content.decode()
    assert 'value="bring-all"' in html and 'value="replace-selected"' in html
    wrong = Blocker.objects.get(path="users/a")
    with mock.patch("deployment.wiring.clients.require_writable"):
        which = {"which": "replace-selected", "thing": str(wrong.pk), "back": MIRROR}
        answer = olga.post(f"{MIRROR}backlog/retry/", which, follow=True)
    assert "Replacing 1 object now" in text(answer)
    assert Blocker.objects.get(replace_asked_at__isnull=False) == wrong
    Mirror.objects.filter(pk=mirror.pk).update(paused=True)
    said = text(olga.get(page))
    assert "LakeMirror could copy these objects itself. Nothing is copied while the mirror is paused" in said
    assert "Bring all" not in said


def test_what_somebody_asked_for_is_on_the_page_that_updates_itself(olga: Client, company: Any) -> None:
    page, wrong = page_of("nightly orders load"), Blocker.objects.get(path="users/a")
    html = olga.get(page).content.decode()
    assert 'id="live"' in html and 'hx-trigger="every 3s, refresh"' in html
    with mock.patch("deployment.wiring.clients.require_writable"):
        olga.post(f"{MIRROR}backlog/retry/", {"which": "replace-selected", "thing": str(wrong.pk)})
        olga.post(f"{MIRROR}backlog/retry/", {"which": "bring-all"})
    part = olga.get(page, headers={"HX-Request": "true", "HX-Target": "live"})
    said = text(part)
    assert "<html" not in part.content.decode()
    copies = "LakeMirror copies what is missing (4 objects left) and replaces 1 object: last asked for by olga just now"
    assert copies in said
    assert "ends when it is all there, at the latest" in said
    assert "Copied by LakeMirror 1 object has other content" in said and "as somebody asked for it" in said
    assert "Needs you" not in said and 'value="bring-all"' not in part.content.decode()
    assert "LakeMirror copies what is missing" in text(olga.get(MIRROR))
    answer = olga.post(f"{MIRROR}backlog/retry/", {"which": "bring-stop", "back": page}, follow=True)
    assert "Copying is stopped: 5 objects are left to the stores' replication." in text(answer)
    assert "Stop copying" not in text(answer) and 'value="bring-all"' in answer.content.decode()


def test_the_plan_on_a_commits_own_page_updates_itself_too(olga: Client, company: Any) -> None:
    for target in ("plan", "repair-plan"):
        answer = olga.get(page_of("nightly orders load"), headers={"HX-Request": "true", "HX-Target": target})
        html = answer.content.decode()
        assert html.lstrip().startswith('<section class="card plan" id="repair-plan"')
        assert 'hx-trigger="every 3s"' in html and 'id="live"' not in html


def test_where_nothing_is_missing_any_more_the_page_leads_back_to_the_mirror(olga: Client, company: Any) -> None:
    answer = olga.get(page_of("f5"))
    assert "Nothing is missing. Back to analytics-eu" in text(answer)
    assert f'<a class="button primary" href="{MIRROR}">' in answer.content.decode()


def test_repair_leads_to_the_commit_that_the_sentence_names(company: Any) -> None:
    [reading] = brief_statuses(Mirror.objects.filter(name="analytics-eu").select_related("source"))
    assert reading.state is State.BLOCKED
    assert reading.to_repair[:8] in reading.sentence
    assert reading.to_repair not in [branch.source_head for branch in reading.branches]


def test_where_we_copy_there_is_nothing_to_copy_by_hand(olga: Client, api: Api, company: Any) -> None:
    Mirror.objects.filter(name="analytics-eu").update(object_replication="managed")
    said = text(olga.get(page_of("nightly orders load")))
    assert "LakeMirror copies this mirror's objects itself: there is nothing to copy by hand" in said
    assert "aws s3" not in said and "Replication brings" not in said
    plan = repair(api, "nightly orders load", {"dry_run": True})[1]
    assert (plan["commands"], plan["steps"][0]["way"]) == ([], "copied")
    Mirror.objects.filter(name="analytics-eu").update(copying_paused=True)
    paused = repair(api, "nightly orders load", {"dry_run": True})[1]
    assert paused["steps"][0]["way"] == "mended"
    assert "Copying is paused: resume it in the mirror's settings" in paused["steps"][0]["fix"]
    assert "aws s3" in text(olga.get(page_of("nightly orders load")))


def test_a_click_gets_the_plan_alone(olga: Client, company: Any) -> None:
    part = olga.get(page_of("returns"), headers={"HX-Request": "true", "HX-Target": "plan"}).content.decode()
    assert "<html" not in part and 'id="run-repair"' in part


def test_who_may_not_run_it_gets_no_button(teammate: User, client: Client, company: Any) -> None:
    client.force_login(teammate)
    assert 'id="run-repair"' not in client.get(page_of("returns")).content.decode()
    assert client.post(page_of("returns")).status_code == 403


def test_a_plan_in_which_nothing_helps_offers_nothing(olga: Client, company: Any) -> None:
    Blocker.objects.filter(mirror=company["analytics-eu"]).update(reason="imported")
    page = olga.get(page_of("nightly orders load"))
    assert "Checking again would change nothing" in text(page)
    assert 'id="run-repair"' not in page.content.decode()


def test_a_repaired_commit_is_promoted(olga: Client, lm: Deployment) -> None:
    commit = lm.lake.commit(files={"a": b"1"})
    lm.arrive(lm.lake.address_of(commit, "a"))
    lm.work()
    lm.arrive()
    Blocker.objects.update(look_at=datetime(2100, 1, 1, tzinfo=UTC))
    lm.work(look=False)
    assert lm.head() != commit
    olga.post(f"/mirrors/lake-eu/commits/{commit}/repair/")
    lm.work(look=False)
    assert lm.head() == commit
