"""Every page by the rules of axe, wide and light, narrow and dark: WCAG 2.2 AA and what is good practice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse
from django.urls.converters import IntConverter
from playwright.sync_api import Page, expect

from db import clock
from jobs.models import Duty
from lakemirror_site.urls import urlpatterns
from mirrors.models import Blocker, Commit, Mirror
from mirrors.services.settings import mirror_update
from tests.browser.conftest import sign_in
from tests.exports.test_beside import going_on as an_export_that_goes_on
from tests.exports.test_pages import an_export
from tests.exports.test_pages import failed as a_failed_export
from tests.mirrors.factories import make_company, make_installation, make_measures
from tests.mirrors.harness import deployment
from tests.notifications.factories import make_alerts, make_channel
from tests.replication.factories import a_pass, a_rule
from tests.replication.factories import in_trouble as a_rule_in_trouble

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MIRROR = "/mirrors/analytics-eu/"
NEW = "/mirrors/new/"
CASES = {
    "home": ["/"],
    "map": ["/map/"],
    "audit": ["/audit/", "/audit/?actor=none&refused=true", "/audit/?from=x"],
    "jobs": ["/jobs/", "/jobs/?find=none"],
    "mirrors": ["/mirrors/", "/mirrors/?state=blocked&find=ana", "/mirrors/?find=none"],
    "mirror_new": [NEW],
    "mirror": [f"{MIRROR}?branch=main&branch=experiments", "/mirrors/lab-eu/?branch=trial", "/mirrors/fresh-eu/"],
    "mirror_commits": [f"{MIRROR}commits/", f"{MIRROR}commits/?branch=none"],
    "mirror_commit": [f"{MIRROR}commits/{{commit}}/", f"{MIRROR}commits/{{promoted}}/"],
    "mirror_backlog": [f"{MIRROR}backlog/", f"{MIRROR}backlog/?reason=object-missing", "/mirrors/models-eu/backlog/"],
    "mirror_held": [f"{MIRROR}held/", "/mirrors/models-eu/held/"],
    "mirror_runs": [f"{MIRROR}runs/", "/mirrors/models-eu/runs/"],
    "commit": ["/commits/{commit}/"],
    "search": ["/search/?q=orders", "/search/?q=", "/search/?q=none"],
    "job_log": ["/jobs/duty-{duty}/log/"],
    "commit_repair": [f"{MIRROR}commits/{{commit}}/repair/"],
    "commit_waive": [f"{MIRROR}commits/{{lost}}/waive/"],
    "mirror_object": [f"{MIRROR}object/?address={{address}}"],
    "mirror_waivers": [f"{MIRROR}waivers/"],
    "mirror_metrics": [f"{MIRROR}metrics/?period=30d", "/mirrors/models-eu/metrics/"],
    "exports": ["/exports/", "/exports/?state=failed&find=none"],
    "export_new": ["/exports/new/"],
    "export": ["/exports/{failed}/", "/exports/{exported}/", "/exports/{exporting}/"],
    "export_edit": ["/exports/{failed}/edit/"],
    "export_delete": ["/exports/{failed}/delete/"],
    "export_repair-drift": ["/exports/{exported}/repair-drift/"],
    "rules": ["/replication/", "/replication/?state=failed&find=none"],
    "rule_new": ["/replication/new/"],
    "rule": ["/replication/orders/", "/replication/logs/"],
    "rule_open": ["/replication/orders/open/?link=2", "/replication/logs/open/"],
    "rule_passes": ["/replication/orders/passes/", "/replication/logs/passes/"],
    "pass": ["/replication/passes/{pass}/"],
    "rule_deletes": ["/replication/logs/deletes/"],
    "rule_edit": ["/replication/orders/edit/"],
    "target_new": ["/replication/orders/links/new/"],
    "target_remove": ["/replication/orders/links/1/remove/", "/replication/logs/links/1/remove/"],
    "rule_delete": ["/replication/orders/delete/"],
    "notifications": ["/notifications/"],
    "maintenance_new": ["/notifications/maintenance/new/"],
    "channel_new": ["/notifications/channels/new/"],
    "channel": ["/notifications/channels/pager/"],
    "channel_edit": ["/notifications/channels/pager/edit/"],
    "channel_delete": ["/notifications/channels/pager/delete/"],
    "installations": ["/installations/"],
    "installation_new": ["/installations/new/"],
    "installation": ["/installations/eu-west-1/", "/installations/mars-1/"],
    "installation_edit": ["/installations/mars-1/edit/"],
    "installation_delete": ["/installations/mars-1/delete/"],
    "mirror_sweeps": [f"{MIRROR}sweeps/"],
    "mirror_settings": [f"{MIRROR}settings/"],
    "mirror_audit": [f"{MIRROR}audit/", "/mirrors/models-eu/audit/"],
    "mirror_delete": [f"{MIRROR}delete/"],
    "access": ["/access/"],
    "users": ["/access/users/", "/access/users/?find=none"],
    "user_new": ["/access/new-user/"],
    "user": ["/access/users/olga/"],
    "user_edit": ["/access/users/olga/edit/"],
    "user_delete": ["/access/users/olga/delete/"],
    "user_keys": ["/access/users/olga/keys/"],
    "groups": ["/access/groups/"],
    "group_new": ["/access/new-group/"],
    "group": ["/access/groups/Viewers/"],
    "group_delete": ["/access/groups/Viewers/delete/"],
    "policies": ["/access/policies/"],
    "policy_new": [
        "/access/new-policy/",
        "/access/new-policy/?template=replicator-for&source=A",
        "/access/new-policy/?template=view-mirror",
        "/access/new-policy/?template=view-mirror&mirror=analytics-eu",
        "/access/new-policy/?mirror=analytics-eu",
    ],
    "policy": ["/access/policies/MirrorAdmin/"],
    "policy_edit": ["/access/policies/MirrorAdmin/edit/", "/access/policies/MirrorAdmin/edit/?as=json"],
    "policy_delete": ["/access/policies/AllAccess/delete/"],
    "keys": ["/access/keys/"],
    "simulate": ["/access/simulate/?action=fs:ReadObject&arn=*"],
    "login": ["/login/", "/login/?next=/mirrors/"],
    "openid_return": ["/login/openid/return/"],
    "sessions": ["/account/sessions/"],
    "user_sessions": ["/access/users/olga/sessions/"],
    "password": ["/account/password/"],
    "password_reset_confirm": ["/password-reset/x/y/"],
    "api-docs": ["/docs/api"],
    "help": ["/help/", "/help/?q=lost+lease", "/help/?q=none+such"],
    "help-document": ["/help/guide/tasks/", "/help/guide/troubleshooting/", "/help/how-it-works/", "/help/pages/"],
    "no page": ["/nix/"],
}
"""The addresses at which each page of `urls.py` is looked at."""

NO_PAGES = {"help-file"}
"""What gives out pictures and example files as they are."""

RULES = {
    "resultTypes": ["violations"],
    "preload": False,
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}

OTHERWISE = ((390, "light", ["target-size"]), (390, "dark", ["color-contrast"]))
"""What a narrow window or other colours can change: names, roles and order are the same. Colours are asked for once for
each scheme, for that is most of the work."""

ASK = """options => axe.run(options).then(found => found.violations.flatMap(
    rule => rule.nodes.map(node => `${rule.id}: ${node.target} ${node.html.slice(0, 160)}`)))"""
FEWER = "[...document.querySelectorAll('section.call')].filter((_, n) => n % 16).forEach(one => one.remove())"
"""The API's page has a hundred sections of the same kind: some of them stand for all."""
OPEN = "document.querySelectorAll('main details').forEach(one => { one.open = true })"


def violations(page: Page) -> list[str]:
    """What axe has to say against the page as it stands: wide and narrow, light and dark."""
    for script in (AXE_SCRIPT, FEWER, OPEN):
        page.evaluate(script)
    found = page.evaluate(ASK, RULES)
    for width, scheme, rules in OTHERWISE:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 760})
        found += [f"{width} px, {scheme}: {one}" for one in page.evaluate(ASK, RULES | {"runOnly": rules})]
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 760})
    return found


def look_at(page: Page, addresses: list[str]) -> dict[str, list[str]]:
    """The addresses of which something is wrong, and what."""
    found = {}
    for address in addresses:
        page.goto(address)
        if wrong := violations(page):
            found[address] = wrong
    return found


def addresses() -> list[str]:
    """Those of the cases that people see who are signed in."""
    commit, promoted = (Commit.objects.get(message=one).sha for one in ("nightly orders load", "orders 2026-11-19"))
    make_measures(Mirror.objects.get(name="analytics-eu"), now=clock.now(), days=30)
    places = {
        "commit": commit,
        "promoted": promoted,
        "lost": commit,
        "address": quote(Blocker.objects.filter(kind="object").order_by("pk")[0].address),
        "duty": Duty.objects.order_by("pk").values_list("pk", flat=True)[0],
        "failed": a_failed_export().pk,
        "exported": an_export("good", state="exported-successfully").pk,
        "exporting": an_export_that_goes_on().pk,
    }
    make_installation()
    a_rule("logs", paused=True)
    places["pass"] = a_pass(a_rule_in_trouble()).pk
    make_channel()
    make_alerts()
    shown = [address for name, some in CASES.items() if name != "login" for address in some]
    return [address.format(**places) for address in shown]


@pytest.fixture
def company() -> Iterator[dict[str, Mirror]]:
    with deployment():
        yield make_company()


def test_every_page_with_mirrors(olga: Page, company: Any) -> None:
    assert look_at(olga, addresses()) == {}


def test_every_page_without_mirrors(olga: Page) -> None:
    assert look_at(olga, ["/", "/mirrors/", "/jobs/", "/exports/", "/replication/"]) == {}


def test_pages_of_who_is_nobody_or_may_nothing(page: Page, outsider: Any) -> None:
    assert look_at(page, CASES["login"]) == {}
    sign_in(page, "otto", "wrong")
    expect(page.get_by_role("alert")).to_be_visible()
    assert violations(page) == []
    sign_in(page, "otto")
    expect(page.get_by_role("heading", level=1)).to_have_text("Permission denied")
    assert violations(page) == []


def test_forms_that_were_refused_and_answers_to_clicks(olga: Page, company: Any, owner: Any) -> None:
    for address, button in ((NEW, "Create mirror"), (f"{MIRROR}delete/", "Delete mirror")):
        olga.goto(address)
        olga.get_by_role("button", name=button).click()
        expect(olga.get_by_role("alert")).to_be_visible()
        assert violations(olga) == []
    olga.goto(f"{MIRROR}settings/")
    mirror_update(actor=owner, mirror=company["analytics-eu"], changes={"rpo_seconds": 60})
    olga.get_by_role("button", name="Save").click()
    expect(olga.get_by_role("alert")).to_be_visible()
    olga.get_by_role("button", name="Sync now").click()
    expect(olga.locator(".notice")).to_be_visible()
    olga.locator(".menu summary").click()
    assert violations(olga) == []
    olga.get_by_role("button", name="Keyboard shortcuts").click()
    assert violations(olga) == []


def test_the_checks_of_a_new_mirror(olga: Page, company: Any) -> None:
    olga.goto(NEW)
    olga.get_by_label("Repository", exact=True).fill("lake")
    olga.get_by_label("Branches to mirror", exact=True).fill("release-*")
    olga.get_by_role("button", name="Check").click()
    expect(olga.get_by_role("region", name="Checks")).to_contain_text("checks failed")
    assert violations(olga) == []


def pages() -> Iterator[URLPattern]:
    """What the site has for people: the apps' own addresses, and the API's page."""
    for one in urlpatterns:
        if isinstance(one, URLResolver) and str(one.pattern) == "":
            yield from one.url_patterns
        elif isinstance(one, URLPattern) and one.name == "api-docs":
            yield one


def somewhere(page: URLPattern) -> str:
    """Its path, with arguments that are nobody's."""
    kinds = page.pattern.converters.items()
    return reverse(str(page.name), kwargs={name: 1 if isinstance(kind, IntConverter) else "x" for name, kind in kinds})


def test_every_address_that_can_be_looked_at_has_a_case(client: Client, db: None) -> None:
    without = [page for page in pages() if page.name not in CASES.keys() | NO_PAGES]
    assert {page.name for page in without} >= {"mirror_sync", "logout"}
    assert [page.name for page in without if client.get(somewhere(page)).status_code != 405] == []
