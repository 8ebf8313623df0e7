"""A night: time that passes, the duties of a deployment that go on meanwhile, and what can go wrong."""

from __future__ import annotations

from datetime import timedelta

from django.apps import apps
from django.db.models import DateTimeField, F, QuerySet

from audit.models import AuditEvent
from audit.rounds import look_round
from audit.verify import note, verify
from core.errors import Unreachable
from db import clock
from exports.models import Export
from installations import contact
from jobs.models import Duty
from mirrors.models import Blocker, HeldMerge, Mirror
from mirrors.services.settings import mirror_update
from mirrors.services.waivers import waiver_give
from mirrors.transitions.duties import ensure_mirror_duties
from notifications import delivery, rounds
from rbac import services as rbac
from rbac.models import AccessKey, User
from tests.exports.test_pages import HEAD, an_export
from tests.fakes import FakeLakeFS, replicate
from tests.mirroring.test_found_by_breaking import age, lose
from tests.mirrors.harness import NAMESPACE, Deployment

SECOND = "s3://dst/lake-second"
SALES = {"team": "sales"}
POLICY = {"branches": "main", "copies": 1, "hold_seconds": 45, "when_late": "refuse"}
DAY = timedelta(days=1)
TURN = 60.0
_APPS = ("mirrors", "jobs", "installations", "exports", "notifications")
_EVERY_CALL = [name for name in vars(FakeLakeFS) if not name.startswith("_")]


def pass_time(seconds: float) -> None:
    """Everything that is noted happened so much earlier: for whoever reads it, so much time has passed."""
    for model in (model for app in _APPS for model in apps.get_app_config(app).get_models()):
        times = [field.name for field in model._meta.concrete_fields if isinstance(field, DateTimeField)]
        if times:
            model._default_manager.update(**{name: F(name) - timedelta(seconds=seconds) for name in times})


class Night:
    """Two mirrors of `lake` from us-east-1 in eu-west-1, the second one of the sales team, which holds merges; an
    export there, and every duty that works for them. `who` does what people do."""

    def __init__(self, lm: Deployment, who: User) -> None:
        self.lm, self.who = lm, who
        self.replicates = True
        first = Mirror.objects.get(name="lake-eu")
        second = Mirror.objects.create(
            name="lake-second",
            source=first.source,
            region=first.region,
            storage_namespace=SECOND,
            labels=SALES,
            hold=[POLICY],
        )
        ensure_mirror_duties(second)
        self.export = an_export(repository="lake")
        self.export_succeeds()

    def turn(self, times: int = 1) -> None:
        """So often time passes, objects arrive, all duties do their work, and what is to be told is sent."""
        for _ in range(times):
            pass_time(TURN)
            if self.replicates:
                replicate(self.lm.us_store, self.lm.eu_store, to=NAMESPACE)
                replicate(self.lm.us_store, self.lm.eu_store, to=SECOND)
            contact.look_round()
            self.run(contact.DUTY)
            self.lm.work(1)
            self.look()
            self.send()

    def look(self) -> None:
        """One round of `alerts`."""
        rounds.look_round()
        self.run(rounds.DUTY)

    def send(self) -> list[str]:
        """One round of `notify` for each channel; gives what each says, by the channel's age."""
        delivery.look_round()
        return self.run(delivery.DUTY)

    def run(self, kind: str) -> list[str]:
        """All duties of a kind."""
        keys = Duty.objects.filter(kind=kind).order_by("subject").values_list("pk", flat=True)
        return [self.lm.run(key) for key in keys]

    # --- what goes wrong, and what is put right -----------------------------------------------------------------------

    def lakefs_goes_down(self) -> None:
        """That of the destination: no call is answered."""
        self.lm.eu.failing = dict.fromkeys(_EVERY_CALL, Unreachable("http://eu:8000 did not answer"))

    def lakefs_comes_back(self) -> None:
        self.lm.eu.failing = {}

    def commit_that_lacks(self, path: str) -> None:
        """A commit of which one object does not arrive at the first mirror."""
        lose(self.lm, self.lm.lake.commit(files={path: b"1", "another": b"2"}), path)

    def lose_what_was_there(self, commit: str, path: str) -> None:
        """Of the first mirror; the time has come to verify it."""
        lose(self.lm, commit, path)
        age(commit, lm=self.lm)

    def bring_back(self) -> None:
        """What was lost, or had not arrived."""
        self.lm.eu_store.hidden.clear()

    def nobody_needs(self, path: str) -> None:
        """The next commit drops a file, and somebody accepts that history lacks it at the first mirror."""
        self.lm.lake.commit(files={path: None})
        addresses = Blocker.objects.filter(mirror__name="lake-eu", path=path).values_list("address", flat=True)
        mirror = Mirror.objects.get(name="lake-eu")
        waiver_give(actor=self.who, mirror=mirror, objects=list(set(addresses)), reason="a draft")

    def pauses(self, seconds: float) -> None:
        """The second mirror, for so long."""
        until = clock.now() + timedelta(seconds=seconds)
        self._change({"paused": True, "pause_reason": "new disks", "paused_until": until})

    def resumes(self) -> None:
        self._change({"paused": False})

    def _change(self, changes: dict[str, object]) -> None:
        mirror_update(actor=self.who, mirror=Mirror.objects.get(name="lake-second"), changes=changes)

    def key_nears_its_end(self) -> None:
        """One that was made for a year, for the nightly export."""
        key, now = rbac.key_create(actor=self.who, user=self.who, description="nightly").key, clock.now()
        AccessKey.objects.filter(pk=key.pk).update(created_at=now - 352 * DAY, expires_at=now + 13 * DAY)

    def key_is_replaced(self) -> None:
        rbac.key_create(actor=self.who, user=self.who, description="nightly")

    def audit_is_changed(self, reason: str) -> None:
        """Past what the application allows; then all of it is read again."""
        look_round()
        first = AuditEvent.objects.filter(number__gt=0).order_by("number")[:1]
        QuerySet(model=AuditEvent).filter(pk__in=list(first.values_list("pk", flat=True))).update(reason=reason)
        note(verify())

    def a_head_comes_without_asking(self, commit: str) -> None:
        """Into a branch into which merges are held."""
        now, source = clock.now(), Mirror.objects.get(name="lake-second").source
        came = {"state": "ungated", "held_at": now, "until": now, "ended_at": now}
        HeldMerge.objects.create(repository=source, branch="main", commit_id=commit, **came)

    def that_head_is_of_yesterday(self) -> None:
        HeldMerge.objects.update(held_at=F("held_at") - DAY)

    def export_fails(self) -> None:
        Export.objects.update(state="export-failed", error="12 tasks failed: access denied", current_ref=HEAD)

    def export_is_tried_again(self) -> None:
        Export.objects.update(state="in-progress", error="")

    def export_succeeds(self) -> None:
        now, path = clock.now(), self.export.path
        done = {"current_ref": HEAD, "last_success_ref": HEAD, "path_at_success": path, "succeeded_at": now}
        Export.objects.update(state="exported-successfully", error="", head_at=now, **done)
