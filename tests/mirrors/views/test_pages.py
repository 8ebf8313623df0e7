"""The pages without a browser: who sees them, what they say, what a form keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from audit.models import AuditEvent
from core.access.documents import allow, policy_document
from core.access.policies import repository_arn
from core.errors import Unreachable
from deployment import config
from installations.probes import NAME
from jobs.models import Duty
from mirrors.models import Mirror, MirrorBranch
from mirrors.services.placement import RESERVED
from mirrors.transitions import duties
from mirrors.urls import urlpatterns
from rbac import services
from rbac.models import User
from tests.cast import person
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment, deployment, replicate_in_order
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true", "HX-Target": "live"}
TYPED = {
    "source_repository": "lake",
    "source_region": "us-east-1",
    "name": "lake-eu",
    "region": "eu-west-1",
    "storage_namespace": "s3://dst/lake",
}
PAGES = ["/", "/jobs/", "/mirrors/", "/mirrors/new/", "/mirrors/analytics-eu/", "/mirrors/analytics-eu/delete/"]


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


@pytest.fixture
def lm() -> Iterator[Deployment]:
    with deployment() as made:
        yield made


# Who may see them


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_sent_to_sign_in_and_back(client: Client, company: Any, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (302, f"/login/?next={path}")


@pytest.mark.parametrize("path", PAGES)
def test_who_may_not_is_told_the_action_and_the_resource(
    outsider: User, client: Client, company: Any, path: str
) -> None:
    client.force_login(outsider)
    answer = client.get(path)
    assert answer.status_code == 403
    of_mirror = path.startswith("/mirrors/analytics-eu/")
    right = "fs:ReadRepository on arn:lakefs:fs:::repository/analytics-eu" if of_mirror else "fs:ListRepositories on *"
    assert f"otto may not {right}" in text(answer)


def test_who_may_look_sees_mirrors_and_may_not_sync_them(teammate: User, client: Client, company: Any) -> None:
    client.force_login(teammate)
    assert client.get("/mirrors/analytics-eu/").status_code == 200
    answer = client.post("/mirrors/analytics-eu/sync/")
    assert answer.status_code == 403
    assert "fs:MirrorRepository" in text(answer)
    assert "arn:lakefs:fs:::repository/analytics" in text(answer)


def test_operators_get_the_buttons_that_run_a_mirror_and_no_others(client: Client, company: Any) -> None:
    client.force_login(person("otis", "Operators"))
    shown = text(client.get("/mirrors/analytics-eu/"))
    assert all(button in shown for button in ("Validate", "Pause", "Sync now"))
    assert "Delete…" not in shown
    assert client.post("/mirrors/analytics-eu/pause/").status_code == 302
    assert Mirror.objects.get(name="analytics-eu").paused
    answer = client.post("/mirrors/analytics-eu/settings/", {"paused": "on"})
    assert (answer.status_code, "otis may not fs:MirrorRepository" in text(answer)) == (403, True)


def test_a_poll_of_a_session_that_ended_goes_to_sign_in_as_a_whole(client: Client, company: Any) -> None:
    answer = client.get("/mirrors/", headers={**HTMX, "HX-Current-URL": "http://testserver/mirrors/"})
    assert (answer.status_code, answer["HX-Redirect"]) == (401, "/login/?next=/mirrors/")


# What they say


def test_many_branches_are_paged_and_found_by_name(olga: Client, company: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirrors.views.mirror.PAGE", 2)
    first = olga.get("/mirrors/analytics-eu/?branch=main").content.decode()
    assert 'href="?branch=main&amp;page=2"' in first
    assert first.count('<tr class="branch') == 2
    last = olga.get("/mirrors/analytics-eu/?page=99").content.decode()
    assert 'rel="prev"' in last and 'rel="next"' not in last
    found = olga.get("/mirrors/analytics-eu/?find=FEATURES").content.decode()
    assert "features_v2" in found
    assert found.count('<tr class="branch') == 1
    nothing = text(olga.get("/mirrors/analytics-eu/?find=nowhere"))
    assert "No branch's name holds nowhere. Show all 6" in nothing


def test_few_branches_need_no_search(olga: Client, company: Any) -> None:
    assert "Find branches by name" not in olga.get("/mirrors/analytics-eu/").content.decode()


def test_a_mirror_has_a_row_for_each_branch(olga: Client, company: Any) -> None:
    said = text(olga.get("/mirrors/analytics-eu/"))
    assert "main is 4 commits and 14 min behind: 3 objects of" in said
    for name in ("main", "experiments", "features_v2", "rollback-test", "backfill/2024-q4", "release-12"):
        assert name in said
    for word in ("Blocked", "Validating", "Up to date", "Source rewound", "Syncing"):
        assert word in said


def test_an_opened_branch_shows_its_blockers_and_ladder(olga: Client, company: Any) -> None:
    said = text(olga.get("/mirrors/analytics-eu/?branch=main"))
    for word in (
        "orders/day=2026-11-20/part-00017.parquet",
        "Missing",
        "Attempts",
        "nightly orders load",
        "waits for its ancestors",
    ):
        assert word in said
    assert "backfill, week" not in said


def test_a_branch_with_a_slash_opens_and_closes_by_its_link(olga: Client, company: Any) -> None:
    closed = olga.get("/mirrors/analytics-eu/?branch=main").content.decode()
    assert "?branch=main&amp;branch=backfill%2F2024-q4" in closed
    opened = olga.get("/mirrors/analytics-eu/?branch=main&branch=backfill%2F2024-q4")
    assert "start of the backfill" in text(opened)
    assert 'href="?branch=main#' in opened.content.decode()


@pytest.mark.parametrize("path", ["/mirrors/nothing/", "/mirrors/nothing/delete/", "/nix/", "/mirrors/analytics-eu/x/"])
def test_what_does_not_exist_is_a_404_page_of_ours(olga: Client, path: str) -> None:
    answer = olga.get(path)
    assert answer.status_code == 404
    assert "Page not found" in text(answer)


def test_a_mirror_that_is_being_deleted_is_gone_from_pages(olga: Client, company: Any) -> None:
    Mirror.objects.filter(name="models-eu").update(state=Mirror.State.DELETING)
    assert olga.get("/mirrors/models-eu/").status_code == 404
    assert "models-eu" not in text(olga.get("/mirrors/"))


def test_names_and_messages_are_escaped(olga: Client, company: Any) -> None:
    mirror = company["analytics-eu"]
    mirror.source.branches.filter(name="main").update(name="<script>alert(1)</script>")
    mirror.branches.filter(name="main").update(name="<script>alert(1)</script>")
    mirror.source.commits.filter(message="returns").update(message="<img src=x onerror=alert(2)>")
    page = olga.get("/mirrors/analytics-eu/", {"branch": "<script>alert(1)</script>"}).content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("path", ["/mirrors/", "/mirrors/analytics-eu/", "/mirrors/analytics-eu/?branch=main"])
def test_a_poll_gets_only_the_part_that_changes(olga: Client, company: Any, path: str) -> None:
    part = olga.get(path, headers=HTMX).content.decode()
    assert 'id="live"' in part
    assert "<html" not in part
    assert part.count('id="live"') == 1


def test_a_busy_page_asks_often_and_a_quiet_one_seldom(olga: Client, company: Any) -> None:
    assert "every 3s" in olga.get("/mirrors/analytics-eu/").content.decode()
    assert "every 60s" in olga.get("/mirrors/archive-eu/").content.decode()
    assert "every 60s" in olga.get("/mirrors/models-eu/").content.decode()


def test_pages_are_not_kept_by_caches(olga: Client, company: Any) -> None:
    assert "no-store" in olga.get("/mirrors/analytics-eu/")["Cache-Control"]


def test_unknown_is_a_dash(olga: Client, company: Any) -> None:
    part = olga.get("/mirrors/fresh-eu/", headers=HTMX).content.decode()
    assert "source checked —" in part


@pytest.mark.parametrize("path", [*PAGES, "/nix/"])
def test_every_page_says_whose_it_is(olga: Client, company: Any, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = replace(config.current(), organization_name="Ada & Sons")
    monkeypatch.setattr(config, "current", lambda: told)
    page = olga.get(path).content.decode()
    assert "LakeMirror · Ada &amp; Sons</title>" in page
    assert 'title="Ada &amp; Sons">Ada &amp; Sons</span>' in page


def test_a_poll_keeps_the_organization_in_the_title(
    olga: Client, company: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = replace(config.current(), organization_name="Ada & Sons")
    monkeypatch.setattr(config, "current", lambda: told)
    assert "LakeMirror · Ada &amp; Sons</title>" in olga.get("/mirrors/analytics-eu/", headers=HTMX).content.decode()


def test_without_an_organization_nothing_is_said_of_one(olga: Client, company: Any) -> None:
    page = olga.get("/mirrors/").content.decode()
    assert "<title>Mirrors · LakeMirror</title>" in page
    assert "organization" not in page


def test_what_is_being_prepared_is_told_on_every_page(olga: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from deployment import preparation

    stages = (preparation.Stage("spark", "Installing Spark", "running", "of 456 MB"),)
    monkeypatch.setattr(preparation, "status", lambda: preparation.Preparation(stages))
    assert "Still starting up" in text(olga.get("/mirrors/"))
    assert "Installing Spark: running of 456 MB" in text(olga.get("/mirrors/"))


# The form of a new mirror


def test_a_form_makes_a_mirror_and_says_so(olga: Client, lm: Deployment) -> None:
    replicate_in_order(lm)
    answer = olga.post("/mirrors/new/", TYPED, follow=True)
    assert answer.redirect_chain == [("/mirrors/lake-eu/", 302)]
    assert "Mirror lake-eu created" in text(answer)
    assert "New: the repository in eu-west-1 is being created." in text(answer)
    assert AuditEvent.objects.filter(actor="olga", action="fs:MirrorRepository").exists()


@pytest.mark.parametrize(
    ("change", "status", "field", "words"),
    [
        ({"name": ""}, 400, "name", "This field is required."),
        ({"name": "Not A Name"}, 400, "name", "is not a valid mirror name"),
        ({"name": "new"}, 400, "name", "is a page of LakeMirror's own"),
        ({"name": "n" * 300}, 400, "name", "at most 200"),
        ({"storage_namespace": "/tmp/x"}, 400, "storage_namespace", "is not a storage namespace"),
        ({"region": "mars-1"}, 400, "region", "Select a valid choice"),
        ({"source_repository": "nothing"}, 404, "", "there is no repository 'nothing' in us-east-1"),
    ],
)
def test_an_error_stands_beside_its_field_and_nothing_typed_is_lost(
    olga: Client, lm: Deployment, change: dict[str, str], status: int, field: str, words: str
) -> None:
    typed = TYPED | change
    answer = olga.post("/mirrors/new/", typed)
    page = answer.content.decode()
    assert answer.status_code == status
    assert words in text(answer)
    if field:
        assert f'id="id_{field}_error"' in page
        assert 'aria-invalid="true"' in page
    for name, value in typed.items():
        if name not in ("region", "source_region") and value:
            assert f'value="{value}"' in page
    assert not Mirror.objects.exists()


def test_a_taken_name_is_a_conflict_beside_the_name(olga: Client, lm: Deployment) -> None:
    olga.post("/mirrors/new/", TYPED | {"anyway": "1"})
    answer = olga.post("/mirrors/new/", TYPED | {"storage_namespace": "s3://dst/other"})
    assert answer.status_code == 409
    assert "a mirror named 'lake-eu' exists" in text(answer)


def test_a_namespace_in_use_is_a_conflict_beside_the_namespace(olga: Client, lm: Deployment) -> None:
    olga.post("/mirrors/new/", TYPED | {"anyway": "1"})
    answer = olga.post("/mirrors/new/", TYPED | {"name": "other-eu"})
    assert answer.status_code == 409
    assert 'id="id_storage_namespace_error"' in answer.content.decode()


def test_an_unreachable_source_keeps_the_form_and_says_so(olga: Client, lm: Deployment) -> None:
    lm.us.failing["get_repository"] = Unreachable("no answer within 15 s")
    answer = olga.post("/mirrors/new/", TYPED)
    assert answer.status_code == 503
    assert "can't be asked" in text(answer)
    assert 'value="s3://dst/lake"' in answer.content.decode()


def test_who_may_only_look_is_told_which_right_is_missing(teammate: User, client: Client, lm: Deployment) -> None:
    client.force_login(teammate)
    assert "fs:MirrorRepository on arn:lakefs:fs:::repository/*" in text(client.post("/mirrors/new/", TYPED))
    elsewhere = allow(["fs:MirrorRepository", "fs:CreateRepository", "fs:AttachStorageNamespace"], "*")
    denied = allow(["fs:CreateRepository"], repository_arn("lake-eu")) | {"effect": "deny"}
    policy = services.policy_put(actor="system:tests", document=policy_document("Elsewhere", elsewhere, denied))
    services.policy_attach(actor="system:tests", policy=policy, user=teammate)
    answer = client.post("/mirrors/new/", TYPED)
    assert answer.status_code == 403
    assert "fs:CreateRepository on arn:lakefs:fs:::repository/lake-eu" in text(answer)
    assert 'value="lake-eu"' in answer.content.decode()


# Verbs


def test_sync_now_wakes_the_duties_and_says_queued(olga: Client, company: Any, lm: Deployment) -> None:
    mirror = company["billing-us"]
    duties.ensure_mirror_duties(mirror)
    Duty.objects.update(due_at=Now() + timedelta(minutes=1))
    answer = olga.post("/mirrors/billing-us/sync/", follow=True)
    assert answer.redirect_chain == [("/mirrors/billing-us/", 302)]
    assert "Syncing billing-us" in text(answer)
    assert Duty.objects.filter(due_at__lte=Now()).count() == 5


@pytest.mark.parametrize(
    ("back", "place"),
    [
        ("", "/mirrors/models-eu/"),
        ("/jobs/?find=x", "/jobs/?find=x"),
        ("//elsewhere.example/", "/mirrors/models-eu/"),
        ("https://elsewhere.example/", "/mirrors/models-eu/"),
        ("javascript:alert(1)", "/mirrors/models-eu/"),
        ("nothing", "nothing"),
        ("/a\r\nb: c\0", "/a%0D%0Ab:%20c%00"),
    ],
)
def test_an_action_leads_back_to_a_page_of_ours(
    olga: Client, company: Any, lm: Deployment, back: str, place: str
) -> None:
    answer = olga.post("/mirrors/models-eu/sync/", {"back": back})
    assert (answer.status_code, answer["Location"]) == (302, place)


def test_sync_now_answers_a_script_with_its_words_alone(olga: Client, company: Any, lm: Deployment) -> None:
    answer = olga.post("/mirrors/analytics-eu/sync/", headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "Syncing analytics-eu" in text(answer)
    assert "<html" not in answer.content.decode()


def test_a_mirror_is_paused_and_resumed_by_its_button(olga: Client, company: Any, lm: Deployment) -> None:
    path = "/mirrors/analytics-eu/"
    assert f'action="{path}pause/"' in olga.get(path).content.decode()
    answer = olga.post(f"{path}pause/", follow=True)
    assert answer.redirect_chain == [(path, 302)]
    assert "analytics-eu is paused" in text(answer)
    page = olga.get(path)
    assert "Paused" in text(page)
    assert f'action="{path}resume/"' in page.content.decode()
    answer = olga.post(f"{path}resume/", headers=HTMX)
    assert "analytics-eu is resumed" in text(answer)
    assert "<html" not in answer.content.decode()
    assert not Mirror.objects.get(name="analytics-eu").paused


def test_verbs_need_post_and_a_token(owner: User, company: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    assert client.get("/mirrors/analytics-eu/sync/").status_code == 405
    verbs = ("sync", "delete", "pause", "resume")
    for path in ("/mirrors/new/", *(f"/mirrors/analytics-eu/{verb}/" for verb in verbs)):
        assert client.post(path).status_code == 403
    assert Mirror.objects.live().count() == len(company)


def test_deletion_says_what_goes_and_what_stays(olga: Client, company: Any) -> None:
    said = text(olga.get("/mirrors/analytics-eu/delete/"))
    assert "The repository analytics-eu in eu-west-1, with its 5 branches" in said
    assert "Every object under s3://lake-eu-west-1/analytics-eu" in said


@pytest.mark.parametrize("typed", ["", "analytics", "ANALYTICS-EU"])
def test_deletion_wants_the_name_typed(olga: Client, company: Any, typed: str) -> None:
    answer = olga.post("/mirrors/analytics-eu/delete/", {"typed": typed})
    assert answer.status_code == 400
    assert "Nothing was deleted" in text(answer)
    assert Mirror.objects.get(name="analytics-eu").state == "active"


def test_deletion_by_the_typed_name_begins(olga: Client, company: Any, lm: Deployment) -> None:
    answer = olga.post("/mirrors/analytics-eu/delete/", {"typed": "analytics-eu"}, follow=True)
    assert "analytics-eu is being deleted. Its objects stay where they are." in text(answer)
    assert Mirror.objects.get(name="analytics-eu").state == "deleting"
    assert AuditEvent.objects.filter(actor="olga", action="fs:DeleteRepository").exists()


def test_who_may_not_delete_is_told_so_beside_the_form(teammate: User, client: Client, company: Any) -> None:
    client.force_login(teammate)
    answer = client.post("/mirrors/analytics-eu/delete/", {"typed": "analytics-eu"})
    assert answer.status_code == 403
    assert "fs:DeleteRepository" in text(answer)


# The stylesheet


def colours(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", css))


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


WORDS_ON = [
    *((word, ground) for word in ("text", "dim", "accent", "bad") for ground in ("ground", "card", "accent-ground")),
    *((word, f"{word}-ground") for word in ("good", "busy", "warn", "bad", "quiet")),
    *((word, ground) for word in ("good",) for ground in ("card", "ground")),
    ("on-accent", "accent"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(scheme: str) -> None:
    css = (Path(__file__).parents[3] / "static" / "lakemirror.css").read_text()
    light, dark = css.split("@media (prefers-color-scheme: dark)")[:2]
    palette = colours(light) | (colours(dark) if scheme == "dark" else {})
    weak = {pair: round(contrast(palette[pair[0]], palette[pair[1]]), 2) for pair in WORDS_ON}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_edges_of_fields_and_dots_stand_out_from_their_ground(scheme: str) -> None:
    css = (Path(__file__).parents[3] / "static" / "lakemirror.css").read_text()
    light, dark = css.split("@media (prefers-color-scheme: dark)")[:2]
    palette = colours(light) | (colours(dark) if scheme == "dark" else {})
    assert contrast(palette["firm"], palette["card"]) >= 3


# What others did to a mirror


def test_an_opened_branch_offers_to_undo_a_forced_write(olga: Client, company: Any, lm: Deployment) -> None:
    page = olga.get("/mirrors/lab-eu/?branch=trial&branch=main").content.decode()
    assert page.count("Undo the uncommitted changes</button>") == 1
    answer = olga.post("/mirrors/lab-eu/reset-branch/", {"branch": "trial"}, follow=True)
    assert "the uncommitted changes of trial are being undone" in text(answer)
    assert MirrorBranch.objects.get(mirror=company["lab-eu"], name="trial").reset_asked
    assert olga.post("/mirrors/lab-eu/reset-branch/", {"branch": "nowhere"}).status_code == 404


@pytest.mark.parametrize("branch", ["", "\0", "tri\0al", "b" * 10_000, "zweig-ü-枝-\N{SNOWMAN}", "../main", "<b>"])
@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_branch_that_can_not_be_is_told_and_nothing_is_undone(
    olga: Client, company: Any, branch: str, headers: dict[str, str]
) -> None:
    answer = olga.post("/mirrors/lab-eu/reset-branch/", {"branch": branch}, headers=headers)
    assert answer.status_code == (200 if headers else 404)
    assert "lab-eu' has no branch" in text(answer)
    assert len(answer.content) < 10_000
    assert not MirrorBranch.objects.filter(reset_asked=True).exists()


def test_a_branch_of_any_script_is_reset(olga: Client, company: Any, lm: Deployment) -> None:
    MirrorBranch.objects.filter(name="trial").update(name="zweig-ü-枝", uncommitted=True)
    answer = olga.post("/mirrors/lab-eu/reset-branch/", {"branch": "zweig-ü-枝"}, follow=True)
    assert "the uncommitted changes of zweig-ü-枝 are being undone" in text(answer)
    assert MirrorBranch.objects.get(reset_asked=True).name == "zweig-ü-枝"


def test_no_page_has_an_address_that_a_mirror_could_take() -> None:
    words = {str(one.pattern).split("/")[1] for one in urlpatterns if str(one.pattern).startswith("mirrors/")}
    assert {word for word in words if NAME.fullmatch(word)} <= RESERVED


def test_an_opened_branch_tells_who_else_moved_it(olga: Client, company: Any) -> None:
    move = {"branch": "main", "why": "moved-by-somebody", "at": datetime.now(UTC)}
    company["lab-eu"].promotions.create(from_commit="a" * 64, to_commit="b" * 64, **move)
    company["lab-eu"].promotions.create(from_commit="b" * 64, **move)
    page = text(olga.get("/mirrors/lab-eu/?branch=main"))
    assert "somebody moved this branch at the mirror to bbbbbbbb" in page
    assert "somebody deleted this branch at the mirror" in page
    for why, told in {
        "back-where-it-was": "this branch was back at bbbbbbbb: somebody moved it, the destination was restored, "
        "or an earlier call of this mirror was carried out late",
        "gone-at-the-mirror": "this branch was gone at the mirror: somebody deleted it, or the destination was",
    }.items():
        company["lab-eu"].promotions.create(
            from_commit="a" * 64, to_commit="b" * 64 if "back" in why else "", **(move | {"why": why})
        )
        assert told in text(olga.get("/mirrors/lab-eu/?branch=main"))
    for why in ("written-by-somebody", "uncommitted-changes-undone"):
        company["lab-eu"].promotions.create(from_commit="a" * 64, to_commit="a" * 64, **(move | {"why": why}))
    page = text(olga.get("/mirrors/lab-eu/?branch=main"))
    assert "somebody wrote to this branch at the mirror without a commit" in page
    assert "the uncommitted changes of this branch were undone" in page


def test_a_poll_leaves_out_what_the_page_has_and_gives_it_again_once_it_is_another(olga: Client, company: Any) -> None:
    def about(html: str) -> tuple[str, bool]:
        [named] = re.findall(r'data-kept="(\w+)"', html)
        return named, "About this mirror" in html

    path = "/mirrors/analytics-eu/"
    named, told = about(olga.get(path).content.decode())
    assert told
    poll = {**HTMX, "Kept": f"somethingelse {named}"}
    assert about(olga.get(path, headers=poll).content.decode()) == (named, False)
    Mirror.objects.filter(name="analytics-eu").update(tags=True)
    anew, told = about(olga.get(path, headers=poll).content.decode())
    assert anew != named and told
