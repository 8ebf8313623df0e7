"""Who may see one mirror only: lists, figures, search, jobs, alerts and metrics tell of that one, and of no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from audit.verbs import Verb
from core.access.documents import Document, allow, policy_document
from core.access.policies import branch_arn, namespace_arn, repository_arn
from core.errors import Denied
from db import clock
from deployment import config
from installations.region_usage import region_facts
from mirrors.models import HeldMerge, Mirror
from mirrors.services.mirrors import mirror_sync
from mirrors.services.settings import mirror_update
from notifications.models import Alert
from notifications.status import alerts_seen_by
from rbac import services
from rbac.models import User
from tests.api import Api
from tests.cast import person
from tests.exports.test_pages import an_export
from tests.mirrors.factories import make_company, make_mirror, make_repository

pytestmark = pytest.mark.django_db
ITS, SOURCE = "analytics-eu", "analytics"
V1 = "/service/replication/v1"
PAGES = ("/", "/mirrors/", "/jobs/", "/notifications/", "/search/?q=a", "/search/?q=eu", f"/mirrors/{ITS}/")
CALLS = ("mirrors", "overview", "jobs", "jobs?type=run", "jobs?type=validation", "alerts", "search?q=a", "search?q=eu")


@pytest.fixture
def company() -> dict[str, Mirror]:
    made = make_company()
    hidden = make_mirror("hidden-eu", make_repository("confidential", now=clock.now()), now=clock.now())
    return made | {"hidden-eu": hidden}


def given(user: User, *statements: Document) -> User:
    """The user with a policy more."""
    name = f"P{AuditEvent.objects.count()}"
    policy = services.policy_put(actor="system:tests", document=policy_document(name, *statements))
    services.policy_attach(actor="system:tests", policy=policy, user=user)
    return User.objects.get(pk=user.pk)


def deny(action: str, resource: str) -> Document:
    return allow([action], resource) | {"effect": "deny"}


@pytest.fixture
def lara(company: dict[str, Mirror]) -> User:
    """Lara sees and runs one mirror."""
    return given(person("lara"), allow(["fs:ReadRepository", "fs:OperateMirror"], repository_arn(ITS)))


def names_of(user: User) -> set[str]:
    return set(Mirror.objects.visible_to(user).values_list("name", flat=True))


def texts(user: User) -> dict[str, str]:
    """All that the site tells somebody, by address."""
    api, browser = Api(user), Client()
    browser.force_login(user)
    told = {f"{V1}/{call}": json.dumps(api.call("GET", f"{V1}/{call}")[1]) for call in CALLS}
    told["/metrics"] = Client().get("/metrics", headers=api.headers).content.decode()
    for page in PAGES:
        answer = browser.get(page, follow=True)
        assert answer.status_code == 200, page
        told[page] = answer.content.decode()
    return told


def test_no_name_of_another_mirror_or_source_is_told(
    lara: User, owner: User, teammate: User, company: dict[str, Mirror]
) -> None:
    """Whatever people did to the others, and whatever is wrong with them."""
    for mirror in company.values():
        mirror_sync(actor=owner, mirror=mirror)
    others = {mirror.name for mirror in company.values()} - {ITS}
    others.add("confidential")  # other sources have the names of things
    everything = "".join(texts(teammate).values())
    assert all(name in everything for name in others), "who sees all reads of all"
    told = texts(lara)
    leaks = [(address, name) for address, text in told.items() for name in others if name in text]
    assert leaks == []
    assert all(ITS in told[address] for address in ("/", "/mirrors/", "/jobs/", "/metrics", f"{V1}/mirrors"))


def test_counts_are_of_what_one_sees(lara: User, company: dict[str, Mirror]) -> None:
    api = Api(lara)
    overview = api.call("GET", f"{V1}/overview")[1]
    assert overview["tiles"]["mirrors"] == 1
    assert sum(pair["mirrors"] for pair in overview["matrix"]) == 1
    assert [row["id"] for row in api.call("GET", f"{V1}/mirrors")[1]["results"]] == [ITS]
    assert {row["mirror"] for row in api.call("GET", f"{V1}/jobs")[1]["results"]} <= {ITS, None}


def test_another_mirror_is_refused_whether_it_is_there_or_not(lara: User, company: dict[str, Mirror]) -> None:
    api, browser = Api(lara), Client()
    browser.force_login(lara)
    other = company["hidden-eu"]
    said = []
    for source, name in ((other.source.name, other.name), ("nothing", "nothing-eu")):
        said.append((browser.get(f"/mirrors/{name}/").status_code, api.call("GET", mirror_url(source, name))[0]))
        said.append((api.call("POST", f"{mirror_url(source, name)}/pause")[0],) * 2)
    assert set(said) == {(403, 403)}
    # By the address of its own source it is not there.
    assert api.call("GET", mirror_url(other.source.name, ITS))[0] == 404


def mirror_url(source: str, name: str) -> str:
    return f"{V1}/repositories/{source}/mirrors/{name}"


def test_the_refusal_names_both_rights_that_would_do_the_narrow_one_first(
    lara: User, company: dict[str, Mirror]
) -> None:
    _, answer = Api(lara).call("GET", mirror_url("confidential", "hidden-eu"))
    assert "may not fs:ReadRepository on arn:lakefs:fs:::repository/hidden-eu" in answer["message"]
    assert "fs:ListRepositories on * would also be enough" in answer["message"]


def test_who_runs_a_mirror_unseen_is_told_the_right_on_it(outsider: User, company: dict[str, Mirror]) -> None:
    runs = given(outsider, allow(["fs:OperateMirror"], repository_arn(ITS)))
    status, answer = Api(runs).call("GET", f"{V1}/mirrors")
    assert (status, f"may not fs:ReadRepository on {repository_arn(ITS)}" in answer["message"]) == (403, True)


def test_who_can_create_no_mirror_is_not_shown_the_form(lara: User, teammate: User, company: dict[str, Mirror]) -> None:
    """Nor the regions in it; who can create one reads where servers are only with the right to list installations."""
    browser = Client()
    for user in (lara, teammate):
        browser.force_login(user)
        assert all("/mirrors/new/" not in browser.get(page).content.decode() for page in ("/", "/mirrors/"))
        refused = browser.get("/mirrors/new/")
        assert (refused.status_code, "fs:MirrorRepository" in refused.content.decode()) == (403, True)
    create = allow(["fs:MirrorRepository", "fs:CreateRepository"], repository_arn("lake*"))
    maker = given(lara, create, allow(["fs:AttachStorageNamespace"], namespace_arn("s3://b/*")))
    browser.force_login(maker)
    assert "/mirrors/new/" in browser.get("/mirrors/").content.decode()
    hosts = {facts.lakefs for facts in region_facts(config.current().regions)}
    assert not [host for host in hosts if host in browser.get("/mirrors/new/").content.decode()]
    browser.force_login(given(maker, allow(["fs:ListInstallations"])))
    assert all(host in browser.get("/mirrors/new/").content.decode() for host in hosts)


def test_the_audit_tab_keeps_ids_of_keys_from_who_may_not_list_them(
    lara: User, owner: User, company: dict[str, Mirror]
) -> None:
    assert Api(owner).call("POST", f"{mirror_url(SOURCE, ITS)}/sync")[0] == 202
    key = AuditEvent.objects.filter(subject=company[ITS].audit_name).latest("pk").key_id
    browser = Client()
    browser.force_login(lara)
    told = browser.get(f"/mirrors/{ITS}/audit/").content.decode()
    assert "by an access key" in told and key not in told
    browser.force_login(owner)
    assert f"by key {key}" in browser.get(f"/mirrors/{ITS}/audit/").content.decode()


def test_it_is_run_by_the_right_on_itself_and_the_audit_has_that_right(lara: User, company: dict[str, Mirror]) -> None:
    mirror = company[ITS]
    assert mirror_update(actor=lara, mirror=mirror, changes={"paused": True}).paused
    event = AuditEvent.objects.latest("pk")
    assert (event.action, event.arn) == ("fs:OperateMirror", repository_arn(ITS))
    with pytest.raises(Denied, match="fs:MirrorRepository"):
        mirror_update(actor=lara, mirror=mirror, changes={"depth": "content"})
    with pytest.raises(Denied, match="fs:OperateMirror"):
        mirror_sync(actor=lara, mirror=company["hidden-eu"])


@pytest.mark.parametrize(
    "denial",
    [
        deny("fs:OperateMirror", repository_arn(SOURCE)),
        deny("fs:MirrorRepository", repository_arn(SOURCE)),
        deny("fs:OperateMirror", repository_arn(ITS)),
        deny("fs:*", "*"),
    ],
)
def test_a_denial_of_either_right_wins(lara: User, company: dict[str, Mirror], denial: Document) -> None:
    with pytest.raises(Denied):
        mirror_sync(actor=given(lara, denial), mirror=company[ITS])


def test_who_sees_all_but_one_sees_all_but_one(teammate: User, company: dict[str, Mirror]) -> None:
    assert names_of(teammate) == company.keys()
    tom = given(teammate, deny("fs:Read*", repository_arn(ITS)))
    assert names_of(tom) == company.keys() - {ITS}
    assert Api(tom).call("GET", mirror_url(SOURCE, ITS))[0] == 403


def test_wildcards_and_the_variable_of_the_user_are_read_as_elsewhere(company: dict[str, Mirror]) -> None:
    make_mirror("lara", make_repository("notes", now=clock.now()), now=clock.now())
    lara = given(person("lara"), allow(["fs:ReadRepository"], repository_arn("*-eu"), repository_arn("${user}")))
    assert names_of(lara) == {name for name in company if name.endswith("-eu")} | {"lara"}


def test_what_is_in_a_repository_shows_no_mirror(outsider: User, company: dict[str, Mirror]) -> None:
    """A right on branches of a repository is none on the repository."""
    otto = given(outsider, allow(["fs:Read*"], repository_arn(f"{ITS}/*"), repository_arn(f"{ITS}/branch/main")))
    assert names_of(otto) == set()
    assert Api(otto).call("GET", f"{V1}/mirrors")[0] == 403


def test_a_right_on_a_mirror_that_is_not_there_gives_empty_lists(outsider: User, company: dict[str, Mirror]) -> None:
    otto = given(outsider, allow(["fs:ReadRepository"], repository_arn("gone-eu")))
    assert Api(otto).call("GET", f"{V1}/mirrors")[1]["results"] == []
    client = Client()
    client.force_login(otto)
    assert "No mirrors that you may see" in client.get("/").content.decode()


def test_alerts_are_those_of_the_mirror(lara: User, teammate: User, company: dict[str, Mirror]) -> None:
    now = clock.now()
    for mirror in (company[ITS], company["hidden-eu"], None):
        name = mirror.name if mirror else "queue"
        subject = f"mirror/{name}"
        about = {"subject": subject, "name": name, "mirror": mirror and mirror.pk, "severity": "critical"}
        Alert.objects.create(kind="mirror-blocked", since=now, seen_at=now, opened_at=now, **about)
    assert set(alerts_seen_by(teammate).values_list("name", flat=True)) == {ITS, "hidden-eu", "queue"}
    assert set(alerts_seen_by(lara).values_list("name", flat=True)) == {ITS}


def test_more_mirrors_cost_no_more_queries(lara: User, company: dict[str, Mirror]) -> None:
    """Rights are read once for a request, names of mirrors in one query for each list."""
    client, counted = Client(), []
    client.force_login(lara)
    for number in range(2):
        make_mirror(f"more-{number}", make_repository(f"r{number}", now=clock.now()), now=clock.now())
        pages: list[Any] = []
        for page in ("/", "/mirrors/", "/jobs/"):
            with CaptureQueriesContext(connection) as asked:
                assert client.get(page).status_code == 200
            pages.append(len(asked))
        counted.append(pages)
    assert counted[0] == counted[1]


def test_access_to_one_mirror_is_given_from_its_page(owner: User, company: dict[str, Mirror]) -> None:
    """Give access, a template, review, create, attach: then they see that mirror, and are let in nowhere else."""
    ann, admin, browser = person("ann"), Client(), Client()
    admin.force_login(owner)
    browser.force_login(ann)
    assert browser.get(f"/mirrors/{ITS}/").status_code == 403
    link = f"/access/new-policy/?mirror={ITS}"
    assert link in admin.get(f"/mirrors/{ITS}/").content.decode()
    assert "template=operate-mirror&amp;mirror=analytics-eu" in admin.get(link).content.decode()
    draft = admin.get("/access/new-policy/", {"template": "operate-mirror", "mirror": ITS}).context["draft"]
    sent = {"mode": "json", "text": draft.text, "do": "review"}
    reviewed = admin.post("/access/new-policy/", sent).context["review"]
    assert reviewed.warnings == []
    saved = admin.post("/access/new-policy/", sent | {"do": "save", "seal": reviewed.seal})
    assert saved["Location"] == f"/access/policies/Operate-{ITS}/"
    policy_page = admin.get(saved["Location"]).content.decode()
    assert "user:ann" in policy_page and f"/access/new-user/?policy=Operate-{ITS}" in policy_page
    admin.post(f"{saved['Location']}attach/", {"holder": "user:ann"})
    assert f"Operate-{ITS}" in admin.get(link).content.decode(), "who comes again is led to the policy that is there"
    assert browser.get(f"/mirrors/{ITS}/").status_code == 200
    assert browser.post(f"/mirrors/{ITS}/pause/", follow=True).status_code == 200
    assert Mirror.objects.get(name=ITS).paused
    assert browser.get("/mirrors/hidden-eu/").status_code == 403
    assert "Give access" not in browser.get(f"/mirrors/{ITS}/").content.decode()
    assert browser.get("/access/keys/").status_code == 200, "they make access keys of their own"
    new = {"username": "ben", "policy": f"Operate-{ITS}"}
    assert f'value="Operate-{ITS}"' in admin.get(f"/access/new-user/?policy=Operate-{ITS}").content.decode()
    assert admin.post("/access/new-user/", new)["Location"] == "/access/users/ben/"
    browser.force_login(User.objects.get(username="ben"))
    assert browser.get(f"/mirrors/{ITS}/").status_code == 200


def test_a_refusal_leads_to_a_page_that_one_may_see(lara: User, outsider: User, company: dict[str, Mirror]) -> None:
    """To the overview, or the exports; and where there is none, to what one may do, and who can change it."""
    lead = 'class="button primary" href="{}"'

    def refused(user: User, page: str = "/") -> str:
        client = Client()
        client.force_login(user)
        answer = client.get(page)
        assert answer.status_code == 403
        return answer.content.decode()

    assert lead.format("/") in refused(lara, "/mirrors/hidden-eu/")
    nothing = refused(outsider)
    assert 'class="button primary"' not in nothing and "/access/simulate/" in nothing
    export = an_export("main")
    assert lead.format("/exports/") in refused(given(outsider, allow(["fs:ReadBranch"], export.arn)))


def test_who_may_see_no_export_is_told_so(outsider: User, teammate: User) -> None:
    client = Client()
    for user, told in ((outsider, "No exports that you may see"), (teammate, "No exports yet")):
        client.force_login(user)
        assert told in client.get("/exports/").content.decode()


def test_acts_on_exports_are_told_to_who_may_read_their_branch(company: dict[str, Mirror]) -> None:
    export = an_export("secret-plan")
    subject = f"export/{export.region}/{export.repository}/"
    for branch, actor in (("secret-plan", "boss"), ("gone-plan", "boss")):
        right = ("fs:RunExport", branch_arn(export.repository, branch))
        services.audit(actor=actor, right=right, verb=Verb.RUN, subject=subject + branch, reason="the merger")
    lister = given(person("lister"), allow(["fs:ListRepositories"], "*"))
    reader = given(person("reader"), allow(["fs:ListRepositories", "fs:ReadBranch"], "*"))
    for user, told in ((lister, False), (reader, True)):
        browser = Client()
        browser.force_login(user)
        page, call = browser.get("/").content.decode(), str(Api(user).call("GET", f"{V1}/overview")[1])
        assert [word in said for said in (page, call) for word in ("secret-plan", "gone-plan", "the merger")] == [
            told
        ] * 6


def test_an_answer_about_a_held_merge_names_no_region_of_a_hidden_mirror(
    company: dict[str, Mirror], lara: User
) -> None:
    source = company[ITS].source
    make_mirror("analytics-elsewhere", source, region="ap-southeast-2", now=clock.now())
    now = clock.now()
    HeldMerge.objects.create(
        repository=source,
        branch="main",
        commit_id="ab" * 32,
        held_at=now,
        until=now,
        ended_at=now,
        state="released",
        complete_in=["ap-southeast-2", company[ITS].region],
        detail="complete in ap-southeast-2",
    )
    everything = given(person("sees-all"), allow(["fs:ListRepositories"], "*"))
    for user, told in ((lara, False), (everything, True)):
        browser = Client()
        browser.force_login(user)
        page = browser.get(f"/mirrors/{ITS}/held/").content.decode()
        call = Api(user).call("GET", f"{V1}/repositories/{SOURCE}/mirrors/{ITS}/held-merges")[1]["results"]
        assert call[0]["complete_in"][-1] == company[ITS].region
        assert ["ap-southeast-2" in said for said in (page, str(call))] == [told, told]
