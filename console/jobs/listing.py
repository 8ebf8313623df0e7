"""The work in hand, as people ask for it: duties, the checks going on, and a duty made due now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from audit.verbs import Verb
from console import exports_summary, rules_summary
from console.exports_summary import About, SourceRepository
from console.jobs.task_states import ICONS, STATES, TONES, state_of
from core.access.mirror_rights import OPERATE, to_operate
from core.access.policies import Right, repository_arn
from core.errors import Conflict, NotFound
from core.mirroring.object_check import Depth
from db import clock
from jobs import duties, kinds
from jobs.job_ids import JobType, duty_url, job_id, job_url
from jobs.models import Duty
from jobs.querysets import DutyQuerySet
from mirrors.models import Mirror, MirrorDuty, Repository, Run, Validation
from mirrors.models.querysets import MirrorQuerySet
from mirrors.queries.duties import ABOUT_A_MIRROR, duties_about
from mirrors.services.validations import validation_ask
from mirrors.status.runs import ValidationStatus, expected_of
from mirrors.transitions.duties import sweep_soon
from rbac import services as rbac

RUNS = 20
ENDED = 5
KINDS = tuple(kinds.names())
"""All apps have registered theirs before any page is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A duty, and what it is about: a mirror, a source that mirrors have, or (`about`) an export or a rule."""

    duty: Duty
    state: str
    mirror: Mirror | None
    source: Repository | SourceRepository
    about: About | None = None

    @property
    def id(self) -> str:
        """Its name as a job."""
        return job_id(JobType.DUTY, self.duty.pk)

    @property
    def name(self) -> str:
        """The name of what it is about."""
        return self.about.name if self.about else (self.mirror or self.source).name

    @property
    def rights(self) -> tuple[Right, ...]:
        """Action and resource that somebody needs who has it done; of several, one."""
        if self.about:
            return (self.about.right,)
        if self.mirror:
            return to_operate(self.source.name, self.mirror.name)
        return ((OPERATE, repository_arn(self.source.name)),)

    @property
    def word(self) -> str:
        """Its state as people read it."""
        return STATES[self.state]

    @property
    def label(self) -> str:
        """What it does, as people call it."""
        return kinds.label_of(self.duty.kind)

    @property
    def tone(self) -> str:
        """Its state's colour."""
        return TONES.get(self.state, "quiet")

    @property
    def icon(self) -> str:
        """Its state's icon."""
        return ICONS.get(self.state, "check")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A check that goes on; `rate` in entries a second, None before there are any."""

    run: Run
    rate: float | None

    @property
    def id(self) -> str:
        """Its name as a job."""
        return job_id(JobType.RUN, self.run.pk)


def duties_of(visible: MirrorQuerySet, others: Q) -> DutyQuerySet:
    """The duties of these mirrors, of their sources, and `others`."""
    unordered = visible.order_by()
    return Duty.objects.filter(duties_about(unordered.values("pk"), unordered.values("source")) | others)


def others_of(user: Any, find: str = "") -> Q:
    """The duties of the exports and rules that the user may see; `find`: a part of what they are called."""
    exports = Q(kind="export", subject__in=exports_summary.subjects(user, find))
    return exports | rules_summary.duties(user, find)


def about_of(page: Sequence[Duty]) -> Mapping[int, About]:
    """What duties of exports and rules are about, by the duty's key; of those that are gone nothing."""
    exports = exports_summary.abouts([duty.subject for duty in page if duty.kind == "export"])
    found = {duty.pk: exports[duty.subject] for duty in page if duty.kind == "export" and duty.subject in exports}
    return found | dict(rules_summary.abouts(page))


def jobs_of(page: Sequence[Duty], now: datetime) -> list[Job]:
    """With their mirrors, sources, exports and rules; a duty of what is just gone is left out."""
    mirrors = Mirror.objects.select_related("source").in_bulk(
        [duty.subject for duty in page if duty.kind in ABOUT_A_MIRROR]
    )
    sources = Repository.objects.in_bulk([duty.subject for duty in page if duty.kind == MirrorDuty.SENSE])
    about = about_of(page)
    beside = ("export", *rules_summary.KINDS)
    jobs = [_beside(duty, about, now) if duty.kind in beside else _job(duty, mirrors, sources, now) for duty in page]
    return [job for job in jobs if job]


def _beside(duty: Duty, about: Mapping[int, About], now: datetime) -> Job | None:
    it = about.get(duty.pk)
    return it and Job(duty=duty, state=state_of(duty, now, failed=it.failed), mirror=None, source=it.place, about=it)


def _job(duty: Duty, mirrors: Mapping[int, Mirror], sources: Mapping[int, Repository], now: datetime) -> Job | None:
    mirror = None if duty.kind == MirrorDuty.SENSE else mirrors.get(duty.subject)
    source = sources.get(duty.subject) if duty.kind == MirrorDuty.SENSE else mirror and mirror.source
    return Job(duty=duty, state=state_of(duty, now), mirror=mirror, source=source) if source else None


def progress_of(visible: MirrorQuerySet, now: datetime) -> list[Progress]:
    """Checks at work under a lease, the oldest first."""
    held = Duty.objects.filter(kind=MirrorDuty.VALIDATE, until__gt=now).values("subject")
    rows = Run.objects.filter(mirror__in=visible.order_by().values("pk"), ended_at=None)
    rows = rows.filter(mirror_id__in=held).select_related("mirror__source").order_by("started_at", "pk")
    return [_progress(run, now) for run in rows[:RUNS]]


def requested_checks(visible: MirrorQuerySet, now: datetime) -> list[ValidationStatus]:
    """Checks that somebody asked for: those that have not ended, in the order of asking, and the last few that have."""
    rows = Validation.objects.filter(mirror__in=visible.order_by().values("pk")).select_related("mirror__source")
    opened = rows.filter(ended_at=None).order_by("pk")[:RUNS]
    ended = rows.exclude(ended_at=None).order_by("-pk")[:ENDED]
    return [
        ValidationStatus(validation=validation, eta=expected_of(validation, now)) for validation in (*opened, *ended)
    ]


def _progress(run: Run, now: datetime) -> Progress:
    seconds = (now - run.started_at).total_seconds()
    return Progress(run=run, rate=run.entries / seconds if run.entries and seconds > 0 else None)


def duty_retry(*, actor: Any, duty: Duty) -> None:
    """Have a duty done now; one in somebody's hands is done once more at its end. Raises Denied and NotFound."""
    job = next(iter(jobs_of([duty], clock.now())), None)
    if job is None:
        raise NotFound("this task no longer exists")
    right = rbac.require_any(actor, *job.rights)
    subject = job.mirror.audit_name if job.mirror else ""
    about = {"mirror": job.mirror.name} if job.mirror else {"source": job.source.name, "region": job.source.region}
    if job.about and job.about.rule:
        subject, about = f"{rules_summary.SUBJECT}/{job.about.rule}", {"rule": job.about.rule}
    with transaction.atomic():
        if duty.kind == MirrorDuty.SWEEP:  # which else waits until a week is over
            sweep_soon(duty.subject)
        duties.wake(duty.kind, duty.subject)
        after = {"retry": duty.kind, **about}
        rbac.audit(actor=actor, right=right, verb=Verb.RETRY, subject=subject, after=after)


def job_retry(*, actor: Any, kind: JobType, row: Any) -> tuple[str, str | None]:
    """Have a job done now, or once more; gives what is done, and where that can be followed.

    A run's work is its mirror's validation, which takes up whatever is not settled. A validation that has ended is
    asked for anew. Raises Denied, NotFound and, for a check that goes on, Conflict.
    """
    if kind is JobType.DUTY:
        duty_retry(actor=actor, duty=row)
        return f"{kinds.label_of(row.kind)} runs now", job_url(kind, row.pk)
    if kind is JobType.VALIDATION and row.ended_at is not None:
        made = _ask_again(actor, row)
        return "the same check was queued again", job_url(JobType.VALIDATION, made.pk)
    duty = Duty.objects.filter(kind=MirrorDuty.VALIDATE, subject=row.mirror_id).first()
    if duty is None:
        raise NotFound(f"mirror '{row.mirror.name}' has no validation task")
    if duty.until and duty.until > clock.now() and row.ended_at is None:
        raise Conflict(f"a check of '{row.mirror.name}' is running already")
    duty_retry(actor=actor, duty=duty)
    return f"validation of {row.mirror.name} runs now", duty_url(MirrorDuty.VALIDATE, row.mirror_id)


def _ask_again(actor: Any, row: Validation) -> Validation:
    of = {"branch": row.branch} if row.branch else {"commit": row.commit}
    return validation_ask(actor=actor, mirror=row.mirror, depth=Depth(row.depth), **of)
