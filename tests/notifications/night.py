"""A night: time that passes, the duties of a deployment that go on meanwhile, and what can go wrong."""

from __future__ import annotations

from datetime import timedelta

from django.apps import apps
from django.db.models import DateTimeField, F

from core.errors import Unreachable
from db import clock
from exports.models import Export
from installations import contact
from jobs.models import Duty
from mirrors.models import Mirror
from mirrors.transitions.duties import ensure_mirror_duties
from notifications import delivery, rounds
from tests.exports.test_pages import HEAD, an_export
from tests.fakes import FakeLakeFS, replicate
from tests.mirroring.test_found_by_breaking import age, lose
from tests.mirrors.harness import NAMESPACE, Deployment

SECOND = "s3://dst/lake-second"
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
    """Two mirrors of `lake` from us-east-1 in eu-west-1, an export there, and every duty that works for them."""

    def __init__(self, lm: Deployment) -> None:
        self.lm = lm
        self.replicates = True
        first = Mirror.objects.get(name="lake-eu")
        second = Mirror.objects.create(
            name="lake-second", source=first.source, region=first.region, storage_namespace=SECOND
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

    def export_fails(self) -> None:
        Export.objects.update(state="export-failed", error="12 tasks failed: access denied", current_ref=HEAD)

    def export_is_tried_again(self) -> None:
        Export.objects.update(state="in-progress", error="")

    def export_succeeds(self) -> None:
        now, path = clock.now(), self.export.path
        done = {"current_ref": HEAD, "last_success_ref": HEAD, "path_at_success": path, "succeeded_at": now}
        Export.objects.update(state="exported-successfully", error="", head_at=now, **done)
