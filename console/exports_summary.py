"""What exports bring to the pages that they share with mirrors: overview, jobs, search and metrics.

Whoever asks is only told of exports whose branches the user may read; but for the metrics, which are of all for who
may see every mirror.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.urls import reverse

from core.exporting.explain import STATES, Told
from core.exporting.state_machine import State
from core.mirroring.explain.mirror import STUBBORN
from core.mirroring.states import State as ShownState
from core.text.phrases import Phrase, count, say, sentence
from exports.api.exports import narrowed, visible
from exports.models import Export, ExportRun
from exports.services.exports import KIND, subject_of
from exports.status.export import ExportSummary, drifting, export_statuses, unseen, unverified
from exports.status.timeline import Progress, progress_of
from installations import contact
from jobs.job_ids import JobType, job_id
from jobs.models import Duty
from mirrors.services.rights import sees_every_mirror
from rbac import services as rbac
from rbac.services import Right
from web.prometheus import Gauge, labelled

MOST = 50
GONE = ~Q(gone="") & Q(paused=False)
"""Their branch was deleted at the source, and nobody has said yet that this is meant."""
EXPORT = ("region", "repository", "branch")
"""Labels of every export; one with a name has `name`, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """An export that needs somebody; `verb` at `verb_url` is what helps, "" where the user may not do it."""

    export: Export
    told: Told
    name: str
    url: str
    verb: str = ""
    verb_url: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """How all exports are doing: how many there are, how many need somebody, and some of these.

    Of the others so many are `cut_off`: their region's lakeFS or store does not answer; `unknown`: nobody sees where
    their branch is; `retrying`; `new`: never exported whole to their place. Each counts once, as the first of these.
    """

    total: int
    needing: int
    some: Sequence[Need]
    phrase: Phrase
    cut_off: int = 0
    unknown: int = 0
    retrying: int = 0
    new: int = 0

    @property
    def in_order(self) -> int:
        """How many are exported, as far as is known, with nothing against them."""
        return self.total - self.needing - self.unsettled - self.new

    @property
    def unsettled(self) -> int:
        """Of how many nobody can say that they are well, though nobody has to do anything about them alone."""
        return self.cut_off + self.unknown + self.retrying

    @property
    def others(self) -> str:
        """What is said of those that neither are in order nor need somebody; "" if there are none."""
        words = [f"{count(self.cut_off, 'depends', 'depend')} on a region that does not answer"] if self.cut_off else []
        words += [f"{count(self.unknown, 'is', 'are')} unknown"] if self.unknown else []
        words += [f"{count(self.retrying, 'is', 'are')} being retried"] if self.retrying else []
        words += [f"{count(self.new, 'is', 'are')} not exported yet"] if self.new else []
        return ", ".join(words)

    @property
    def more(self) -> int:
        """How many of those that need somebody are not named."""
        return self.needing - len(self.some)


@dataclass(frozen=True, slots=True)
class SourceRepository:
    """A repository in a region, of which there need be no mirror."""

    name: str
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a duty of an export or of a rule is about, and the right to have it done."""

    name: str
    url: str
    place: SourceRepository
    branch: str
    """As addresses have it: with the export's name, where it has one. "" for what is no export."""
    right: Right
    rule: str = ""
    """The name of a replication rule."""
    failed: bool = False
    """Whether it waits for somebody: its duty does nothing then."""
    repair_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingOn:
    """A run that goes on; `job` is the duty that carries it, "" while it has none."""

    run: ExportRun
    progress: Progress
    name: str
    url: str
    phase: str
    job: str
    pause_url: str = ""


def summary(user: Any, now: datetime, most: int) -> Summary:
    """How many there are, how many have failed, drifted, lost their branch or could not be verified, and some of these:
    by what is stored, not by each one's reading."""
    seen = _seen(user)
    overdue = Q(paused=True, paused_until__lte=now)
    found = Q(pk__in=drifting(seen).values("export")) | Q(pk__in=unverified(seen).values("export"))
    failed = seen.filter(Q(state=State.FAILED) | GONE | overdue | found)
    total, needing = seen.count(), failed.count()
    some = export_statuses(list(failed.order_by("repository", "branch", "name", "pk")[:most]), now) if needing else []
    counted = Summary(total, needing, [_need(user, reading) for reading in some], say())
    if total:
        counted = replace(counted, **_others(seen.exclude(pk__in=failed.values("pk")), now))
    return replace(counted, phrase=_phrase(counted))


def _others(exports: QuerySet[Export], now: datetime) -> dict[str, int]:
    """How many are not in order, of those that need nobody by themselves."""
    silent = {outage.region for outage in contact.outages(now)}
    stubborn = Duty.objects.filter(kind=KIND, failures__gte=STUBBORN).annotate(export=-F("subject"))
    kinds = {
        "cut_off": Q(region__in=silent),
        "unknown": Q(pk__in=unseen(exports, now).values("pk")),
        "retrying": Q(pk__in=stubborn.order_by().values("export"), paused=False),
        "new": Q(last_success_ref="") | ~Q(path_at_success=F("path")),
    }
    counts, before = {}, Q(pk__lt=0)
    for kind, chosen in kinds.items():
        counts[kind] = Count("pk", filter=chosen & ~before)
        before |= chosen
    return exports.aggregate(**counts)


def _phrase(counted: Summary) -> Phrase:
    exports = count(counted.total, "export")
    need = f"{counted.needing:,} of {exports} {_need_verb(counted.needing)} attention" if counted.needing else exports
    rest = counted.others or ("" if counted.needing else "nothing needs you")
    return sentence("; ".join(filter(None, [need, rest])))


def _need_verb(number: int) -> str:
    return "needs" if number == 1 else "need"


def subjects(user: Any, find: str = "") -> list[int]:
    """The subjects of the duties of exports that the user may see."""
    if not find:
        return [-pk for pk in visible(user)]
    return [-pk for pk in narrowed(_seen(user), find).order_by().values_list("pk", flat=True)]


def failed_subjects() -> Any:
    """The subjects of the duties of exports that have failed, as a query."""
    return (
        Export.objects.filter(Q(state=State.FAILED, paused=False) | GONE)
        .annotate(key=-F("pk"))
        .order_by()
        .values("key")
    )


def audit_names(user: Any) -> list[str]:
    """What the audit calls the exports that the user may see."""
    return [export.audit_name for export in _seen(user)]


def abouts(subjects: Sequence[int]) -> Mapping[int, About]:
    """The exports that duties are about; of those that are gone nothing."""
    return {subject_of(export): _about(export) for export in Export.objects.filter(pk__in=[-key for key in subjects])}


def going_on(user: Any, now: datetime, most: int) -> list[GoingOn]:
    """Runs that have not ended, the oldest first."""
    runs = ExportRun.objects.open().filter(export__in=visible(user)).select_related("export")
    runs = list(runs.order_by("started_at", "pk")[:most])
    subjects = [subject_of(run.export) for run in runs]
    numbers = dict(Duty.objects.filter(kind=KIND, subject__in=subjects).values_list("subject", "pk"))
    return [_going_on(user, run, now, numbers.get(subject_of(run.export))) for run in runs]


def find_exports(user: Any, text: str) -> QuerySet[Export]:
    """Those whose repository, branch, name or path holds a text."""
    return narrowed(_seen(user), text).order_by("repository", "branch", "name", "pk")


def exports_of_commit(user: Any, sha: str) -> list[Export]:
    """Exports whose destination holds this commit, by its whole id."""
    return list(_seen(user).filter(last_success_ref=sha.lower()).exclude(last_success_ref="")[:MOST])


def _seen(user: Any) -> QuerySet[Export]:
    return Export.objects.filter(pk__in=visible(user))


def _name(export: Export) -> str:
    return f"{export.repository} · {export.which}"


def _url(export: Export) -> str:
    return reverse("export", args=[export.pk])


def _need(user: Any, reading: ExportSummary) -> Need:
    export = reading.export
    if reading.told.action == "delete":
        return Need(export=export, told=reading.told, name=_name(export), url=_url(export))
    if reading.told.state is ShownState.PAUSED and reading.paused_too_long:
        return _need_of_pause(user, reading)
    verifies = reading.told.state is not ShownState.FAILED
    verb, view = ("Verify", "export_verify") if verifies else ("Repair", "export_repair")
    # While a run goes on, one that repairs say, nothing can be verified.
    may = rbac.allowed(user, "fs:RunExport", export.arn) and not (verifies and reading.active)
    return Need(
        export=export,
        told=reading.told,
        name=_name(export),
        url=_url(export),
        verb=verb if may else "",
        verb_url=reverse(view, args=[export.pk]) if may else "",
    )


def _need_of_pause(user: Any, reading: ExportSummary) -> Need:
    """Of one that is paused for longer than was said."""
    export = reading.export
    may = rbac.allowed(user, "fs:PauseExport", export.arn)
    return Need(
        export=export,
        told=reading.told,
        name=_name(export),
        url=_url(export),
        verb="Resume" if may else "",
        verb_url=reverse("export_resume", args=[export.pk]) if may else "",
    )


def _about(export: Export) -> About:
    return About(
        name=_name(export),
        url=_url(export),
        place=SourceRepository(export.repository, export.region),
        branch=export.which,
        right=("fs:RunExport", export.arn),
        failed=(export.state == State.FAILED or bool(export.gone)) and not export.paused,
        repair_url="" if export.gone else reverse("export_repair", args=[export.pk]),
    )


def _going_on(user: Any, run: ExportRun, now: datetime, duty: int | None) -> GoingOn:
    export = run.export
    may = not export.paused and rbac.allowed(user, "fs:PauseExport", export.arn)
    return GoingOn(
        run=run,
        progress=progress_of(run, now, going_on=not export.paused),
        name=_name(export),
        url=_url(export),
        phase="paused" if export.paused else run.phase,
        job=job_id(JobType.DUTY, duty) if duty else "",
        pause_url=reverse("export_pause", args=[export.pk]) if may else "",
    )


# --- figures ----------------------------------------------------------------------------------------------------------


def gauges(user: Any, now: datetime) -> Iterator[Gauge]:
    """Of all exports, or of those that the user may see; in a number of queries that doesn't grow."""
    rows = Export.objects.filter(deleting=False) if sees_every_mirror(user) else _seen(user)
    readings = export_statuses(list(rows), now)
    copied = dict(ExportRun.objects.order_by().values_list("export").annotate(bytes=Sum("copied_bytes")))
    state = Gauge("export_state", "1 for the state that the export is in, 0 for the others")
    paused = Gauge("export_paused", "1 while the export is paused")
    behind = Gauge("export_behind_commits", "commits of the branch that the destination lacks, as far as counted")
    late = Gauge("export_behind_seconds", "age of the oldest of them")
    failed = Gauge("export_failed_files", "files that the last run could not bring or remove")
    age = Gauge("export_last_success_age_seconds", "since the last complete export")
    moved = Gauge("export_copied_bytes", "copied by all recorded runs")
    for reading in readings:
        export = reading.export
        names = {label: value for label, value in export.identity.items() if value or label in EXPORT}
        labels = labelled(tuple(names), tuple(names.values()))
        for word in STATES:
            state.add(labelled((*names, "state"), (*names.values(), word.value)), reading.told.state is word)
        paused.add(labels, export.paused)
        failed.add(labels, reading.run.failed if reading.run else 0)
        moved.add(labels, copied.get(export.pk, 0))
        if reading.behind and reading.behind.commits is not None:
            behind.add(labels, reading.behind.commits)
        if reading.lag is not None:
            late.add(labels, reading.lag)
        if export.succeeded_at:
            age.add(labels, (now - export.succeeded_at).total_seconds())
    yield from (state, paused, behind, late, failed, age, moved)
