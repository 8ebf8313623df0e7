"""Every address and method, by everybody: who is let through, who is refused, who is asked to sign in."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any
from unittest import mock

import pytest
from django.db import transaction
from django.db.models.signals import post_save
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from audit.models import AuditEvent
from core.access.documents import allow, policy_document
from core.access.policies import Verdict, alert_arn, repository_arn
from core.installations.settings import Secrets, Wish
from core.notifications.channels import ChannelSecrets, ChannelWish
from installations import refresh
from installations.services import installation_create
from jobs.models import Duty
from mirrors.models import Mirror, Run, Sweep, Validation, Waiver
from notifications.channels.services import channel_create
from rbac import permission_catalog, services
from rbac.keys import rate_limit
from rbac.models import Policy, User
from rbac.services import authorize
from replication.models import Approval, Pass
from tests.cast import person
from tests.exports.test_pages import a_run, an_export
from tests.mirrors.harness import Deployment, deployment
from tests.notifications.factories import a_window, an_alert
from tests.rbac.matrix import ANYONE, EVERY_MIRROR, HOOK, MAY, OWN_KEYS, SIGNED_IN, SOME_MIRROR, calls
from tests.replication.factories import a_rule

pytestmark = pytest.mark.django_db
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
OUT = ("anonymous", "revoked", "expired", "disabled")
API = ("/api/", "/service/", "/metrics")
CREATION = {"name": "lake-new", "region": "eu-west-1", "storage_namespace": "s3://dst/new"}
INSTALLATION = {
    "lakefs_endpoint": "http://lakefs.venus",
    "lakefs_access_key_id": "A",
    "lakefs_secret_access_key": "B",
    "store_access": "chain",
}
CHANNEL = {"url": "http://127.0.0.1:9/hook", "signing_secret": "a-secret-of-sixteen"}
RULE = {
    "name": "other",
    "source": {"region": "us-east-1", "uri": "s3://src/other"},
    "targets": [{"region": "eu-west-1", "uri": "s3://out/other"}],
}
STATEMENT = [{"effect": "allow", "action": ["fs:ReadObject"], "resource": "*"}]


@pytest.fixture
def lm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    monkeypatch.setattr(rate_limit, "shared", lambda: None)
    with deployment() as made:
        made.add_mirror()
        made.lake.commit(files={"a": b"1"})
        made.arrive()
        made.work()
        yield made


# --- where: addresses, with what is there --------------------------------------------------------------------------


def addresses() -> dict[str, str]:
    """Every address by its name, with the names of what stands in it."""
    found: dict[str, str] = {}

    def walk(patterns: list[Any], before: str) -> None:
        for one in patterns:
            if isinstance(one, URLResolver):
                walk(one.url_patterns, before + str(one.pattern))
            else:
                assert isinstance(one, URLPattern) and one.name and one.name not in found, one
                found[one.name] = before + str(one.pattern)

    walk(get_resolver().url_patterns, "")
    return found


def there(lm: Deployment, olga: User, thea: User) -> dict[str, Any]:
    """What parts of an address stand for: all of it is there."""
    mirror, now = Mirror.objects.get(), Mirror.objects.get().created_at
    job = Validation.objects.create(mirror=mirror, what="all", depth="etag", key="k", asked_at=now)
    run = Run.objects.create(mirror=mirror, started_at=now)
    export = an_export(repository="lake")
    a_run(export, phase="copy", outcome="export-failed", failed=1, ended_at=now)
    wish = Wish("mars-1", lakefs_endpoint="http://lakefs.mars", lakefs_access_key_id="A", store_access="chain")
    installation_create(actor=olga, wish=wish, secrets=Secrets("s"))
    channel_create(actor=olga, wish=ChannelWish("pager"), secrets=ChannelSecrets(*CHANNEL.values()))
    refresh.read()
    services.policy_put(actor="system:tests", document={"id": "Reads", "statement": STATEMENT})
    key = services.key_create(actor="system:tests", user=thea).key.key_id
    rule = a_rule("copies")
    return {
        "repository": "lake",
        "mirror_id": "lake-eu",
        "installation": "us-east-1",
        "commit": lm.head(),
        "waiver": Waiver.objects.create(mirror=mirror, reason="lost", given_by="olga", given_at=now).pk,
        "sweep": Sweep.objects.create(mirror=mirror, began_at=now, pins="p").pk,
        "job": job.pk,
        "duty": Duty.objects.get(kind="copy").pk,
        "number": run.pk,
        "export": export.pk,
        "branch": "main",
        "rule": "copies",
        "approval": Approval.objects.create(
            link=rule.links.get(), number=1, bytes=1, of=2, asked_at=now, expires_at=now + timedelta(days=7)
        ).pk,
        "pass": Pass.objects.create(rule=rule, kind="dry-run", region="us-east-1", who="olga", began_at=now).pk,
        "link": 1,
        "user_id": "thea",
        "user": "thea",
        "username": "thea",
        "group_id": "Viewers",
        "policy_id": "Reads",
        "access_key_id": key,
        "key": key,
        "session": "0" * 16,
        "handle": "0" * 16,
        "region": "mars-1",
        "channel": "pager",
        "alert": an_alert(),
        "window": a_window(),
        "uidb64": "Mg",
        "token": "a-b",
    }


def filled(name: str, route: str, real: dict[str, Any]) -> str:
    """The address of that name."""
    kinds = {"access/users": "thea", "access/groups": "Viewers", "access/policies": "Reads", "mirrors/": "lake-eu"}
    kinds |= {"help/files": "images/backlog.png", "help/": "access"}
    real = real | {"name": next((it for kind, it in kinds.items() if route.startswith(kind)), "")}
    if route.startswith("exports/"):
        real["number"] = real["export"]
    if "/links/<int:number>" in route:
        real["number"] = 1
    if "passes/<int:number>" in route:
        real["number"] = real["pass"]
    if "jobs/<str:job>" in route:
        real["job"] = f"validation-{real['job']}"
    args = {part.split(">")[0].split(":")[-1] for part in route.split("<")[1:]}
    return reverse(name, kwargs={arg: real[arg] for arg in args} | fixed(name))


def fixed(name: str) -> dict[str, Any]:
    """What the address itself gives to its view, and `reverse` wants to be told."""
    told: dict[str, dict[str, Any]] = {
        "api-preflight": {"mirror_id": "preflight"},
        "api-preview": {"mirror_id": "preview"},
        "api-planned-unreplicated": {"mirror_id": "unreplicated"},
    }
    for state in (True, False):
        pause, active = ("pause", "resume")[not state], ("enable", "disable")[not state]
        told |= {f"{what}_{pause}": {"paused": state} for what in ("mirror", "export", "rule", "link")}
        told |= {f"user_{active}": {"active": state}, ("key_delete", "key_disable")[not state]: {"forever": state}}
    return told.get(name, {})


BODIES: dict[str, dict[str, Any]] = {
    "POST api-mirrors": CREATION,
    "POST api-preflight": CREATION,
    "POST api-preview": CREATION,
    "POST api-planned-unreplicated": CREATION,
    "POST mirror_new": CREATION | {"source_region": "us-east-1", "source_repository": "lake", "include": "*"},
    "POST mirror_delete": {"typed": "lake-eu"},
    "POST blockers_retry": {"which": "all"},
    "POST api-bring": {"all": True},
    "POST mirrors_change": {"verb": "sync"},
    "POST exports_change": {"verb": "run"},
    "POST export_new": {
        "region": "us-east-1",
        "repository": "lake",
        "branch": "main",
        "path": "s3://company-bucket/new",
    },
    "POST api-rules": RULE,
    "POST api-rule-preflight": RULE,
    "POST api-rule-dry-run-new": RULE,
    "POST api-rule-estimate-new": RULE,
    "POST rule_new": {
        "name": "other",
        "region": "us-east-1",
        "uri": "s3://src/other",
        "new": "on",
        "scan_every": "300",
        "target_0_region": "eu-west-1",
        "target_0_uri": "s3://out/other",
    },
    "POST rule_edit": {"new": "on", "scan_every": "900"},
    "POST rule_open_retry": {"which": "all"},
    "POST api-rule-retry": {"all": True},
    "POST api-link-retry": {"all": True},
    "POST link_limits": {"workers": "2"},
    "POST api-repair": {},
    "POST api-users": {"id": "una"},
    "POST user_new": {"username": "una"},
    "POST api-groups": {"id": "Una"},
    "POST group_new": {"name": "Una"},
    "POST api-policies": {"id": "Una", "statement": STATEMENT},
    "POST policy_new": {"mode": "json", "text": json.dumps({"id": "Una", "statement": STATEMENT})},
    "POST api-alert-snooze": {"seconds": 3600},
    "POST alert_snooze": {"seconds": "3600"},
    "POST api-maintenance-windows": {"ends_at": "2026-01-01T00:00:00Z", "reason": "new disks"},
    "POST maintenance_new": {"starts_at": "2026-01-01T00:00", "ends_at": "2026-01-01T00:00", "reason": "new disks"},
    "POST api-channels": {"name": "pager-2"} | CHANNEL,
    "POST channel_new": {"name": "pager-2"} | CHANNEL,
    "POST api-installations": {"region": "mars-2"} | INSTALLATION,
    "POST api-simulate": {"action": "fs:ReadObject", "arn": "*"},
    "POST user_group": {"group": "Viewers"},
    "POST user_group out": {"group": "Viewers", "out": "1"},
    "POST policy_attach": {"holder": "user:thea"},
    "POST user_policy out": {"policy": "Reads", "out": "1"},
    "POST group_policy out": {"policy": "Reads", "out": "1"},
    "POST api-policy-impact": {"statement": None},
}
"""Where the body has what a right is asked for, or an empty one is refused before."""


# --- who --------------------------------------------------------------------------------------------------------------


class Person:
    """Somebody with a browser and a program."""

    def __init__(self, user: User | None) -> None:
        self.browser, self.program, self.headers = Client(), Client(), {}
        if user is not None:
            self.browser.force_login(user)
            self.headers = basic(services.key_create(actor="system:tests", user=user))
        self.cookies = self.browser.cookies.output(header="", sep=";")

    def send(self, call: str, address: str, body: dict[str, Any]) -> HttpResponse:
        """The call, undone afterwards: by program for the API, by browser for pages."""
        method = call.split()[0]
        self.browser.cookies = SimpleCookie(self.cookies)
        with transaction.atomic():
            if address.startswith(API):
                answer = self.program.generic(
                    method, address, json_of(method, body), "application/json", headers=self.headers
                )
            else:
                answer = getattr(self.browser, method.lower())(address, body)
            transaction.set_rollback(True)
        if "installation" in call:
            refresh.read()
        return answer


def json_of(method: str, body: dict[str, Any]) -> bytes:
    return b"" if method == "GET" else json.dumps(body).encode()


def basic(issued: Any) -> dict[str, str]:
    pair = f"{issued.key.key_id}:{issued.secret}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def with_policy(name: str, policy: str) -> User:
    user = person(name)
    services.policy_attach(actor="system:tests", policy=Policy.objects.get(name=policy), user=user)
    return user


def one_mirror(name: str, mirror: str, *actions: str) -> str:
    """A policy of who sees one mirror, and may do so much with it; alerts are answered by who runs it."""
    statements = [allow(["fs:ReadRepository", *actions], repository_arn(mirror))]
    statements += [allow(["fs:AcknowledgeAlert"], alert_arn("*"))] if actions else []
    services.policy_put(actor="system:tests", document=policy_document(name, *statements))
    return name


def people() -> dict[str, Person]:
    """Everybody. Those who aren't let in any more were administrators."""
    found = {
        "anonymous": Person(None),
        "nobody": Person(person("otto")),
        "viewer": Person(person("tom", "Viewers")),
        "operator": Person(person("otis", "Operators")),
        "replicator": Person(with_policy("rita", "ReplicationPolicy")),
        "mirror-admin": Person(with_policy("mia", "MirrorAdmin")),
        "viewer-of-this": Person(with_policy("vera", one_mirror("Views", "lake-eu"))),
        "operator-of-this": Person(with_policy("lara", one_mirror("Runs", "lake-eu", "fs:OperateMirror"))),
        "operator-of-another": Person(with_policy("lisa", one_mirror("RunsOther", "lake-ap", "fs:OperateMirror"))),
        "disabled": Person(dora := person("dora", "Admins")),
    }
    admins = person("adam", "Admins")
    for name, change in (
        ("revoked", {"disabled_at": timezone.now()}),
        ("expired", {"expires_at": timezone.now() - timedelta(1)}),
    ):
        issued = services.key_create(actor="system:tests", user=admins)
        type(issued.key).objects.filter(pk=issued.key.pk).update(**change)
        found[name] = Person(None)
        found[name].headers = basic(issued)
    services.user_set_active(actor="system:tests", user=dora, active=False)
    return found


# --- what is expected, and what is seen -------------------------------------------------------------------------------


def expected(who: str, needs: frozenset[str], address: str) -> str:
    """From the table alone."""
    if needs == {ANYONE}:
        return "through"
    if needs == {HOOK}:
        return "sign in"
    if who in OUT:
        return "sign in"
    if who == "admin" or needs <= {SIGNED_IN} or needs <= MAY[who]:
        return "through"
    if address.startswith("/exports/") and "exports.see" in needs - MAY[who]:
        return "hidden"
    if is_a_job(address) and SOME_MIRROR in MAY[who] and "mirrors.see" in needs - MAY[who]:
        return "hidden"
    if is_a_pass(address) and "rules.see" in needs - MAY[who]:
        return "hidden"
    return "refused"


def is_a_pass(address: str) -> bool:
    """Whether an address is of one pass by its number: that of a rule that one may not see isn't there."""
    return "/v1/passes/" in address or address.startswith("/replication/passes/")


def is_a_job(address: str) -> bool:
    """Whether an address is of one duty, run or validation: that of a mirror that one may not see isn't there."""
    return "/jobs/" in address and not address.endswith("/jobs/")


def seen(answer: HttpResponse, address: str) -> str:
    """What an answer says to who asked."""
    status = answer.status_code
    if status == 401 or (status == 302 and answer["Location"].startswith("/login/?next=")):
        return "sign in"
    if status == 403:
        return "refused"
    if status == 404 and (address.startswith("/exports/") or is_a_job(address) or is_a_pass(address)):
        return "hidden"
    return "broken" if status >= 500 else "no such method" if status == 405 else "through"


def test_everybody_gets_where_the_table_says_and_nowhere_else(lm: Deployment, owner: User) -> None:
    table, everybody = calls(), people() | {"admin": Person(owner)}
    real = there(lm, owner, person("thea"))
    bodies = BODIES | {"POST commit_prioritise": {"commit": real["commit"]}}
    public = {call.split()[1] for call, needs in table.items() if needs == {ANYONE}}
    wrong = []
    for name, route in addresses().items():
        address = filled(name, route, real)
        for method in METHODS:
            known = [call for call in table if call.split()[:2] == [method, name]]
            if (
                not known
                and name not in public
                and seen(everybody["admin"].send(f"{method} {name}", address, {}), address) != "no such method"
            ):
                wrong.append((f"{method} {name}", "has no row in tests/rbac/matrix.py"))
            for call in known:
                for who, one in everybody.items():
                    if who in ("revoked", "expired") and not address.startswith(API):
                        continue  # keys are nothing to pages
                    answer = one.send(call, address, bodies.get(call, {}))
                    want, got = expected(who, table[call], address), seen(answer, address)
                    if want != got:
                        wrong.append((call, who, "expected", want, "seen", got, answer.status_code))
    assert wrong == [], "\n".join(map(str, wrong[:400]))
    assert (
        set(table) - {f"{method} {name}{more}" for method in METHODS for name in addresses() for more in ("", " out")}
        == set()
    )


def test_what_is_audited_is_a_right_that_was_asked_for(lm: Deployment, owner: User) -> None:
    """So that a filter by action finds what was done together with what was refused."""
    asked, audited, admin = set[tuple[str, str]](), list[AuditEvent](), Person(owner)
    real = there(lm, owner, person("thea"))
    bodies = BODIES | {"POST commit_prioritise": {"commit": real["commit"]}}
    decide = authorize.decide

    def noted(user: User, action: str, arn: str) -> Verdict:
        asked.add((action, arn))
        return decide(user, action, arn)

    def written(instance: AuditEvent, **_: Any) -> None:
        audited.append(instance)

    wrong, verbs, routes = [], set[str](), addresses()
    post_save.connect(written, sender=AuditEvent)
    try:
        with mock.patch.object(authorize, "decide", noted):
            for call, needs in calls().items():
                asked.clear()
                audited.clear()
                if not needs & {ANYONE, SIGNED_IN, OWN_KEYS, HOOK}:  # nobody is asked for a right there
                    name = call.split()[1]
                    admin.send(call, filled(name, routes[name], real), bodies.get(call, {}))
                verbs |= {event.verb for event in audited}
                wrong += [
                    (call, event) for event in audited if (event.action, event.arn) not in asked or not event.verb
                ]
    finally:
        post_save.disconnect(written, sender=AuditEvent)
    assert wrong == []
    assert verbs >= {"create", "delete", "pause", "resume", "sync", "validate", "attach", "retry"}


def test_the_table_needs_steps_that_there_are_and_all_of_them() -> None:
    every = {step.key for area in permission_catalog.areas() for step in area.steps}
    rules = {ANYONE, SIGNED_IN, OWN_KEYS, HOOK, SOME_MIRROR, EVERY_MIRROR}
    needed = frozenset().union(*calls().values()) - rules
    assert needed - every == set()
    # What is imported depends on the object: tests/mirrors/services/test_locate.py
    assert every - needed == {"mirrors.api.webhooks", "objects.imported"}, "what no call needs can't be tried"
    assert frozenset().union(*MAY.values()) <= every | rules
