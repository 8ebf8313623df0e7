"""What holds for a mirror as a whole, whatever its branches say: stopped, frozen, paused, or not looked at for long."""

from __future__ import annotations

from datetime import datetime

from core.installations.outages import tell_outage
from core.mirroring.explain.outages import blinding_outage, outage_at
from core.mirroring.explain.verdict import Verdict, state_of, tell_unreachable, what_follows
from core.mirroring.facts import DutyFacts, MirrorFacts
from core.mirroring.rpo import Targets, in_words, is_destination_stale, is_stale
from core.mirroring.states import State
from core.text.phrases import Phrase, count, name, say, sentence, sentences


def judge_standing(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    """What holds for the whole mirror, whatever its branches say; None when it works as it should."""
    for rule in (_stopped, _frozen, _paused, _creating, _elsewhere, _stale_source, _stale_destination):
        verdict = rule(mirror, now, targets)
        if verdict:
            return verdict
    return None


def is_current(mirror: MirrorFacts, now: datetime, targets: Targets) -> bool:
    """Whether both sides were seen lately, as they are now: only then is a branch that lacks nothing known to."""
    if mirror.state == "stopped" or mirror.frozen_reason or mirror.elsewhere:
        return False
    stale = is_destination_stale(mirror.destination_looked_at, now, targets)
    return not stale and not is_stale(mirror.looked_at, now, targets)


PAUSED_TOO_LONG = "paused_too_long"
"""The reason code of a mirror that is paused for longer than was said."""
_ASK_FOR_WORKERS = say("Check that the controller and the workers are running.")
_STOPPED_ADVICE = {
    "name-taken": "Delete this mirror and create it under another name.",
    "repository-removed": "Restore it, or delete this mirror and create a new one.",
    "repository-replaced": "Find out who replaced it; to mirror again, delete this mirror and create a new one.",
    "failed-over": "If people work there now, delete this mirror: their repository is kept.",
    "tampered-record": "Compare the two records; to mirror again, create a new mirror in an empty namespace.",
}


def _stopped(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    if mirror.state != "stopped":
        return None
    why = mirror.reason or "the repository at the destination is not the one that this mirror created"
    code = mirror.reason_code.replace("-", "_")
    advice = _STOPPED_ADVICE.get(mirror.reason_code, "Check that repository before anything else.")
    phrase = sentences(sentence("stopped: ", why.rstrip(".")), say(advice))
    return Verdict(State.STOPPED, code or "stopped", phrase, say("nothing is written"))


def _frozen(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    if not mirror.frozen_reason:
        return None
    phrase = sentences(
        sentence("frozen: ", mirror.frozen_reason.rstrip(".")),
        say(f"What is in {mirror.region} stays as it is. If the change was intended, create a new mirror."),
    )
    return Verdict(State.FROZEN, "source_changed", phrase, say("stays as it is"))


def _paused(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    pause = mirror.pause
    if pause is None:
        return None
    behind = mirror.counted.behind + sum(branch.pending > 0 for branch in mirror.branches)
    unknown = _elsewhere(mirror, now, targets) or _stale_source(mirror, now, targets)
    outage = blinding_outage(mirror)
    told = unknown.sentence if unknown else tell_outage(outage, now) if outage else say()
    waiting = sentence(count(behind, "branch waits", "branches wait")) if behind else say()
    if not behind and not told:
        waiting = sentence("nothing waits")
    phrase = sentences(sentence(pause.told(now), ": no branch moves until somebody resumes it"), waiting, told)
    return Verdict(State.PAUSED, PAUSED_TOO_LONG if pause.is_overdue(now) else "paused", phrase)


def _unreached(mirror: MirrorFacts, now: datetime) -> Phrase:
    outage = outage_at(mirror, mirror.source_region)
    return tell_outage(outage, now) if outage else say()


def _creating(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    if mirror.state != "creating":
        return None
    if failing := mirror.failing_of("manage"):
        why = failing.outcome.rstrip(".")
        phrase = sentences(
            sentence(f"the repository in {mirror.region} could not be created: {why}"), what_follows(failing)
        )
        return Verdict(state_of(failing), "creating_failed", phrase, say("not created yet"), retry_at=failing.due_at)
    if mirror.created_at is not None and is_stale(mirror.created_at, now, targets):
        waited = in_words((now - mirror.created_at).total_seconds())
        unmade = sentence(f"the repository in {mirror.region} has waited {waited} to be created")
        phrase = sentences(unmade, _ASK_FOR_WORKERS)
        return Verdict(State.UNKNOWN, "not_begun", phrase, say("not created yet"), mirror.created_at)
    phrase = sentence(f"new: the repository in {mirror.region} is being created")
    return Verdict(State.NEW, "creating", phrase)


def _elsewhere(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    if not mirror.elsewhere:
        return None
    phrase = sentences(
        sentence(f"{mirror.region} has another store than the one in which this mirror was validated"),
        sentence("everything is about to be validated again in the new store"),
    )
    return Verdict(State.UNPROVEN, "another_store", phrase, say("to be validated in another store"))


def _stale_source(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    looked_at = mirror.looked_at
    if looked_at is None or not is_stale(looked_at, now, targets):
        return None
    unknown = sentence(f"the source was last checked {_ago(looked_at, now)}, so what it has now is not known")
    if mirror.look_error:
        phrase = sentences(unknown, tell_unreachable(mirror))
        state = State.FAILED if mirror.look_refused else State.UNKNOWN
        return Verdict(state, "source_unreachable", phrase, say("source not reached"), looked_at)
    if told := _unreached(mirror, now):
        phrase = sentences(unknown, told)
        return Verdict(State.UNKNOWN, "source_unreachable", phrase, say("source not reached"), looked_at)
    phrase = sentences(unknown, _ASK_FOR_WORKERS)
    return Verdict(State.UNKNOWN, "not_looked", phrase, say("source not checked"), looked_at)


def _stale_destination(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    looked_at = mirror.destination_looked_at
    if looked_at is None or not is_destination_stale(looked_at, now, targets):
        return None
    unknown = sentence(
        name(mirror.region), f" was last checked {_ago(looked_at, now)}, so what it has now is not known"
    )
    if failing := failing_look(mirror):
        why = sentence(f"the last try failed: {failing.outcome.rstrip('.')}")
        phrase = sentences(unknown, why, what_follows(failing))
        state = State.FAILED if failing.refused else State.UNKNOWN
        return Verdict(state, "destination_unreachable", phrase, say("destination not reached"), looked_at)
    if outage := outage_at(mirror, mirror.region):
        phrase = sentences(unknown, tell_outage(outage, now))
        return Verdict(State.UNKNOWN, "destination_unreachable", phrase, say("destination not reached"), looked_at)
    if mirror.moving:  # it was paused
        phrase = sentences(unknown, say("It is being checked now."))
        return Verdict(State.UNKNOWN, "not_looked_yet", phrase, say("being checked"), looked_at)
    phrase = sentences(unknown, _ASK_FOR_WORKERS)
    return Verdict(State.UNKNOWN, "not_looked", phrase, say("destination not checked"), looked_at)


TELLS_MORE = frozenset({State.PAUSED, State.UNKNOWN, State.FAILED})
"""In these states of a whole mirror it is still told what readers of a branch meet."""


def failing_look(mirror: MirrorFacts) -> DutyFacts | None:
    """Why nobody could look at the destination: who promotes looks at its branches and tags, and may not get as far as
    who manages its repository."""
    return mirror.failing_of("promote", "manage")


def _ago(moment: datetime, now: datetime) -> str:
    return f"{in_words((now - moment).total_seconds())} ago"
