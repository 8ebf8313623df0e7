"""What the page of an export says: its state, and one sentence of what is going on and what to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from core.exporting.state_machine import ExportSituation, is_due, is_exported, is_overwritten
from core.exporting.state_machine import State as ExportState
from core.installations.outages import Outage, tell_outage
from core.mirroring.rpo import in_words
from core.mirroring.states import State
from core.pauses import Pause
from core.text.phrases import Phrase, code, count, name, say, sentence, sentences, short

STATES = (
    State.STOPPED,
    State.FAILED,
    State.DAMAGED,
    State.UNPROVEN,
    State.UNKNOWN,
    State.PAUSED,
    State.RETRYING,
    State.SYNCING,
    State.NEW,
    State.UP_TO_DATE,
)
"""Those that an export may be in, the worst first."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run. Times by the database's clock; `phase`: plan, clear, copy, last, markers, manifest, status or done."""

    ref: str
    phase: str
    started_at: datetime
    ended_at: datetime | None = None
    base: str = ""
    to_copy: int = 0
    to_delete: int = 0
    through: int = 0
    """Files brought, found to be there already, and removed."""
    failed: int = 0
    repairs: bool = False
    """It brings again what drifted, and no other commit."""


@dataclass(frozen=True, slots=True)
class Drift:
    """So many files of a commit are not as they should be at the destination, by a verification that ended `at`."""

    ref: str
    missing: int
    different: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Unverified:
    """The last verification, of a commit, ended `at` without an answer, by an error."""

    ref: str
    error: str
    at: datetime


class Gone(StrEnum):
    """What of an export was deleted at the source."""

    BRANCH = "branch"
    REPOSITORY = "repository"

    def __str__(self) -> str:
        return self.value.capitalize()


@dataclass(frozen=True, slots=True)
class ExportFacts:
    """All that the sentence is made from. `head` "" is not known yet."""

    branch: str
    standing: ExportSituation
    head: str = ""
    error: str = ""
    look_error: str = ""
    run: RunFacts | None = None
    succeeded_at: datetime | None = None
    retrying: str = ""
    """Why the last try of something failed that is tried again."""
    outage: Outage | None = None
    """Of the source's lakeFS, now."""
    stale_since: datetime | None = None
    """The last look at the branch, where that is too long ago to speak of now."""
    gone: Gone | None = None
    gone_since: datetime | None = None
    drift: Drift | None = None
    """What the last verification of the destination found, if it found files of the commit missing or different."""
    pause: Pause | None = None
    """What is known of the pause, if it is in one."""
    unverified: Unverified | None = None
    """The last verification of the destination, if it could not be finished."""


@dataclass(frozen=True, slots=True)
class Told:
    """How an export is doing. `action` is the one thing that helps: "repair", "repair-drift", "run", "resume",
    "verify", "delete" or ""."""

    state: State
    word: str
    sentence: Phrase
    action: str = ""


def tell(facts: ExportFacts, now: datetime) -> Told:
    """The state, and why. Nothing is called failed while it is tried again, and nothing good before it was."""
    told = _told(facts, now)
    worse = told.state in (State.STOPPED, State.FAILED, State.DAMAGED)
    return told if worse or facts.unverified is None else _not_verified(told, facts.unverified, now)


def _told(facts: ExportFacts, now: datetime) -> Told:
    standing = facts.standing
    going_on = facts.run is not None and facts.run.ended_at is None
    if facts.gone and not standing.paused and not going_on:
        return Told(State.STOPPED, f"{facts.gone} deleted", _gone(facts, facts.gone, now), "delete")
    if standing.state is ExportState.FAILED:
        return Told(State.FAILED, "Failed", _failed(facts, now), "repair")
    if facts.drift:
        return _drifted(facts, facts.drift, now)
    if standing.paused:
        return Told(State.PAUSED, "Paused", _paused(facts, now), "resume")
    if standing.state in (ExportState.IN_PROGRESS, ExportState.REPAIRED):
        state = State.RETRYING if facts.retrying else State.SYNCING
        return Told(state, "Retrying" if facts.retrying else "Exporting", _going_on(facts))
    if facts.outage:
        return Told(State.UNKNOWN, "Unknown", _not_reached(facts, facts.outage, now))
    if facts.look_error:
        return Told(State.UNKNOWN, "Unknown", sentence(name(facts.branch), f" can't be read: {facts.look_error}"))
    if facts.stale_since and standing.last_success_ref:
        return Told(State.UNKNOWN, "Unknown", _not_looked(facts, facts.stale_since, now))
    return _at_rest(facts, now)


def _gone(facts: ExportFacts, what: Gone, now: datetime) -> Phrase:
    """Whatever else is wrong: nothing but a new branch, or none, would mend it."""
    when = f", seen {in_words((now - facts.gone_since).total_seconds())} ago" if facts.gone_since else ""
    first = sentence(f"{what} deleted at source", say(when), ": delete this export, or export another branch instead")
    held = facts.standing.last_success_ref
    last = sentence("The destination keeps ", short(held), ", the last complete export") if held else say()
    return sentences(first, last)


def _drifted(facts: ExportFacts, drift: Drift, now: datetime) -> Told:
    """Also in a pause, and while a run goes on: only one that repairs brings that, others what changes."""
    ago = in_words((now - drift.at).total_seconds())
    found = [f"{count(drift.missing, 'file')} missing"] if drift.missing else []
    found += [f"{count(drift.different, 'file')} different"] if drift.different else []
    phrase = sentence("The last verification, of ", short(drift.ref), f" {ago} ago, found {' and '.join(found)}")
    run = facts.run
    going_on = run is not None and run.ended_at is None
    repairing = run is not None and going_on and run.repairs
    if facts.standing.paused:
        advice = say() if repairing else _ADVICE
        return Told(State.DAMAGED, "Drifted", sentences(phrase, advice, _paused(facts, now)), "resume")
    if going_on:
        told = sentences(phrase, _going_on(facts) if repairing else _ADVICE)
        return Told(State.DAMAGED, "Repairing" if repairing else "Drifted", told)
    settled = facts.standing.state is ExportState.SUCCESS
    return Told(State.DAMAGED, "Drifted", sentences(phrase, _ADVICE), "repair-drift" if settled else "")


def _not_verified(told: Told, last: Unverified, now: datetime) -> Told:
    """Said beside everything that is no worse; of itself it is a state only where all else is in order."""
    ago = in_words((now - last.at).total_seconds())
    failed = sentence("The last verification, of ", short(last.ref), f" {ago} ago, could not be finished: {last.error}")
    phrase = sentences(told.sentence, failed, say("Fix that, then click Verify."))
    if told.state is State.UP_TO_DATE:
        return Told(State.UNPROVEN, "Not verified", phrase, "verify")
    return replace(told, sentence=phrase)


_ADVICE = say("Repair drift copies these files again and overwrites what is there instead.")


def _not_reached(facts: ExportFacts, outage: Outage, now: datetime) -> Phrase:
    """What is at the destination is as it was; where the branch is now nobody knows."""
    held = facts.standing.last_success_ref
    last = sentence("The last complete export is of ", short(held)) if held else sentence("nothing was exported yet")
    return sentences(tell_outage(outage, now), last)


def _not_looked(facts: ExportFacts, stale_since: datetime, now: datetime) -> Phrase:
    ago = in_words((now - stale_since).total_seconds())
    unknown = sentence(name(facts.branch), f" was last checked {ago} ago, so its head is unknown now")
    return sentences(unknown, say("Check that the controller and the workers are running."))


def _at_rest(facts: ExportFacts, now: datetime) -> Told:
    standing = facts.standing
    if not standing.last_success_ref:
        due = is_due(standing)
        what = "the first export starts with the next check of the branch" if due else "nothing has been exported yet"
        return Told(State.NEW, "New", sentence(what), "" if due else "run")
    if is_exported(standing, facts.head):
        when = f" for {in_words((now - facts.succeeded_at).total_seconds())}" if facts.succeeded_at else ""
        phrase = sentence(f"The destination has matched {facts.branch} (", short(standing.last_success_ref), f"){when}")
        return Told(State.UP_TO_DATE, "Exported", phrase)
    if is_overwritten(standing) and not is_due(standing):
        unknown = say("Runs have written to ", code(standing.path), " that the database has no record of")
        why = ": it was restored from an older backup, so what this path contains is unknown"
        return Told(State.UNKNOWN, "Unknown", sentences(sentence(unknown, why), say("Run the export.")), "run")
    if is_due(standing):
        phrase = sentence(short(facts.head), " is queued for export")
        return Told(State.SYNCING, "Exporting", phrase)
    if standing.path_at_success != standing.path:
        phrase = sentence("Nothing has been exported to ", code(standing.path), " yet: the path is new")
        return Told(State.NEW, "New", phrase, "run")
    phrase = say(
        "The destination has ",
        short(standing.last_success_ref),
        "; ",
        name(facts.branch),
        " points to ",
        short(facts.head),
    )
    return Told(State.UP_TO_DATE, "Exported once", sentence(phrase, " now, and this export is not continuous"), "run")


def _failed(facts: ExportFacts, now: datetime) -> Phrase:
    run, standing = facts.run, facts.standing
    when = f" stopped {in_words((now - run.ended_at).total_seconds())} ago" if run and run.ended_at else " failed"
    ref = short(run.ref) if run else say()
    first = sentence("The export of ", ref, when, f": {facts.error}")
    last = say(short(standing.last_success_ref), ", the last complete export") if standing.last_success_ref else say()
    does = say("continues from ", last) if last else say("restarts the export and skips files already copied")
    advised = "click Repair" in facts.error or "repair the export" in facts.error
    return sentences(first, sentence("Repair " if advised else "Fix that, then click Repair: it ", does))


def _paused(facts: ExportFacts, now: datetime) -> Phrase:
    paused = (facts.pause or Pause()).told(now)
    if facts.run and facts.run.ended_at is None:
        doing = "repaired" if facts.run.repairs else "exported"
        return sentence(
            paused, " while ", short(facts.run.ref), f" is being {doing}: Resume continues where it stopped"
        )
    return sentence(paused, ": no commits of ", name(facts.branch), " are exported")


def _going_on(facts: ExportFacts) -> Phrase:
    run = facts.run
    if run is None or run.ended_at is not None:
        if facts.retrying:
            return sentence(f"Repair is waiting to start: {facts.retrying}")
        return sentence("Repair is starting")
    whole = run.to_copy + run.to_delete
    how = f": {run.through:,} of {count(whole, 'file')} done" if run.phase != "plan" and whole else ""
    failed = f", {run.failed:,} failed" if run.failed else ""
    doing = "being repaired at the destination" if run.repairs else "being exported"
    first = sentence(short(run.ref), f" is {doing}{how}{failed}")
    newer = facts.head and facts.head != run.ref and facts.standing.continuous
    then = sentence(short(facts.head), " is next") if newer else say()
    tried = sentence(f"Retrying: {facts.retrying}") if facts.retrying else say()
    return sentences(first, tried, then)
