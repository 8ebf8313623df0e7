"""From facts to a state, a reason and one sentence that says what is going on and what to do.

The pages and the API say the same, because both ask here. Rules are tried in order; the first that applies speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.mirroring.blocker_text import describe_lack
from core.mirroring.facts import BranchFacts, CommitFacts, Counted, DutyFacts, MirrorFacts
from core.mirroring.rpo import Targets, in_words, is_stale, lag
from core.mirroring.states import ASIDE, Stage, State
from core.text.phrases import Phrase, code, count, name, say, sentence, sentences, short

STUBBORN = 3
"""Keeping the mirror's own files is told when it failed so often in a row, although no commit waits for that."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`brief` fits a table row; `sentence` stands alone. `since` and `retry_at` where there is such a time."""

    state: State
    reason_code: str
    sentence: Phrase
    brief: Phrase = Phrase()
    since: datetime | None = None
    retry_at: datetime | None = None


_WELL = Verdict(State.UP_TO_DATE, "up_to_date", say())


@dataclass(frozen=True, slots=True)
class _Case:
    """What the rules look at."""

    mirror: MirrorFacts
    branch: BranchFacts
    now: datetime
    targets: Targets

    @property
    def lag(self) -> float:
        return lag(self.branch.oldest_seen_at, self.now)

    @property
    def worst(self) -> CommitFacts | None:
        """The commit in trouble to speak of: what waiting won't help first, then the oldest."""
        return min(self.branch.troubled, key=lambda commit: not commit.hopeless, default=None)


# --- the mirror as a whole ------------------------------------------------------------------------------------------


def explain(mirror: MirrorFacts, now: datetime, targets: Targets) -> tuple[Verdict, list[Verdict]]:
    """How the mirror is doing, and each of its branches in their order.

    What holds for all of it goes first, else its worst branch speaks, with a word on the others.
    """
    standing = judge_standing(mirror, now, targets)
    verdicts = [_explain_branch(branch, mirror, standing, now, targets) for branch in mirror.branches]
    if standing:
        return standing, verdicts
    if not verdicts and not mirror.counted.settled:
        told = sentence("no branch of ", name(mirror.source), " has been read yet; the first look is under way")
        return Verdict(State.NEW, "not_looked_yet", told), []
    worst = _of_worst(mirror, list(zip(mirror.branches, verdicts, strict=True)), now)
    return _with_damage(mirror, _with_managing(mirror, worst)), verdicts


def _with_managing(mirror: MirrorFacts, verdict: Verdict) -> Verdict:
    """Every branch is where it should be, but what the destination holds of its own can't be kept: nobody would see."""
    failing = mirror.failing
    if verdict.state is not State.UP_TO_DATE or failing is None:
        return verdict
    if failing.kind != "manage" or failing.failures < STUBBORN:
        return verdict
    told = sentences(verdict.sentence, sentence(_failed(failing)), say("It is tried again."))
    return replace(
        verdict, state=State.RETRYING, reason_code=f"{failing.kind}_failed", sentence=told, retry_at=failing.due_at
    )


def _failed(failing: DutyFacts) -> str:
    """Which step, how often and why, as a part of a sentence."""
    tries = count(failing.failures, "time")
    return f"the step “{failing.kind}” failed {tries} in a row ({failing.outcome.rstrip('.')})"


def _with_damage(mirror: MirrorFacts, verdict: Verdict) -> Verdict:
    """What had been complete and is no more is said first; it is worse than anything that is only late."""
    number, example = mirror.waiting.damaged, mirror.waiting.example
    if not number:
        return verdict
    what = count(number, "thing that was complete before is", "things that were complete before are")
    what = f"more than {what}" if mirror.waiting.more_damaged else what
    named = say(" (", code(example), " among them)" if number > 1 else ")") if example else say()
    told = sentences(
        sentence(f"damaged: {what} missing or wrong in {mirror.region} now", named),
        say(f"No branch was moved back. Copy {'it' if number == 1 else 'them'} again from {mirror.source_region}."),
        verdict.sentence,
    )
    if verdict.state.severity > State.DAMAGED.severity:
        return replace(verdict, sentence=told)
    return replace(verdict, state=State.DAMAGED, reason_code="damaged", sentence=told)


def _of_worst(mirror: MirrorFacts, verdicts: Sequence[tuple[BranchFacts, Verdict]], now: datetime) -> Verdict:
    """The verdict on the branch that is worst off; branches that go, or are not selected, are only counted."""
    aside = [verdict for _, verdict in verdicts if verdict.state in ASIDE]
    staying = [pair for pair in verdicts if pair[1].state not in ASIDE]
    counted = mirror.counted
    if not staying and not counted.settled:
        staying, aside = list(verdicts), []
    branch, worst = max(staying, key=lambda pair: _weight(pair[0], pair[1], now), default=(None, _WELL))
    if worst.state is State.UP_TO_DATE:
        told = _all_well(mirror, [other for other, _ in staying])
    else:
        others = [verdict for other, verdict in staying if other is not branch]
        told = sentences(worst.sentence, _the_others(others, counted))
    return replace(worst, sentence=sentences(told, *_those_aside(aside)))


def _weight(branch: BranchFacts, verdict: Verdict, now: datetime) -> tuple[int, float, bool]:
    return verdict.state.severity, lag(branch.oldest_seen_at, now), branch.default


def _all_well(mirror: MirrorFacts, branches: Sequence[BranchFacts]) -> Phrase:
    number = len(branches) + mirror.counted.settled
    only = branches[0].name if branches else mirror.counted.name
    which = say(f"all {number} branches are") if number > 1 else say(name(only), " is")
    proof = f"{mirror.region} has every commit that was seen in {mirror.source_region}"
    return sentence(which, " up to date: ", proof)


def _those_aside(verdicts: Sequence[Verdict]) -> Iterator[Phrase]:
    """How many branches go, and how many are only kept."""
    for state, what in ((State.LEAVING, "gone at the source"), (State.UNSELECTED, "kept, but not mirrored")):
        number = sum(verdict.state is state for verdict in verdicts)
        if number:
            yield sentence(f"{count(number, 'branch is', 'branches are')} {what}")


def _the_others(others: Sequence[Verdict], counted: Counted) -> Phrase:
    """How the branches that the sentence doesn't name are doing."""
    number = len(others) + counted.settled + counted.behind
    well = counted.settled + sum(verdict.state is State.UP_TO_DATE for verdict in others)
    behind = number - well
    if not number:
        return say()
    if not behind:
        return sentence("the other branch is up to date" if well == 1 else f"the other {well} branches are up to date")
    if not well:
        return sentence(f"{count(behind, 'other branch is', 'other branches are')} behind too")
    return sentence(f"{count(behind, 'other branch is', 'other branches are')} behind too, {well} up to date")


def judge_standing(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    """What holds for the whole mirror, whatever its branches say; None when it works as it should."""
    for rule in (_stopped, _frozen, _paused, _creating):
        verdict = rule(mirror, now)
        if verdict:
            return verdict
    return _stale_source(mirror, now, targets) or _stale_destination(mirror, now, targets)


_STOPPED_ADVICE = {
    "name-taken": "Delete this mirror and make it under another name.",
    "repository-removed": "Put it back, or delete this mirror and make a new one.",
    "repository-replaced": "Find out who replaced it; to mirror again, delete this mirror and make a new one.",
    "failed-over": "If people work there now, delete this mirror: it keeps their repository.",
    "tampered-record": "Compare the two records; to mirror again, make a new mirror in an empty namespace.",
}


def _stopped(mirror: MirrorFacts, now: datetime) -> Verdict | None:
    if mirror.state != "stopped":
        return None
    why = mirror.reason or "the repository at the destination is not the one that this mirror made"
    advice = _STOPPED_ADVICE.get(mirror.reason_code, "Look at that repository before anything else.")
    told = sentences(sentence("stopped: ", why.rstrip(".")), say(advice))
    return Verdict(State.STOPPED, _as_code(mirror.reason_code) or "stopped", told, say("nothing is written any more"))


def _as_code(reason: str) -> str:
    return reason.replace("-", "_")


def _frozen(mirror: MirrorFacts, now: datetime) -> Verdict | None:
    if not mirror.frozen_reason:
        return None
    told = sentences(
        sentence("frozen: ", mirror.frozen_reason.rstrip(".")),
        say(f"What is in {mirror.region} stays as it is. If the change was meant, make a new mirror."),
    )
    return Verdict(State.FROZEN, "source_changed", told, say("stays as it is"))


def _paused(mirror: MirrorFacts, now: datetime) -> Verdict | None:
    if not mirror.paused:
        return None
    behind = mirror.counted.behind + sum(branch.pending > 0 for branch in mirror.branches)
    waiting = f"{count(behind, 'branch waits', 'branches wait')}" if behind else "nothing waits"
    told = sentences(sentence("paused: no branch is moved until it is resumed"), sentence(waiting))
    return Verdict(State.PAUSED, "paused", told)


def _creating(mirror: MirrorFacts, now: datetime) -> Verdict | None:
    if mirror.state != "creating":
        return None
    if mirror.failing:
        why = mirror.failing.outcome.rstrip(".")
        told = sentence(f"the repository in {mirror.region} could not be made yet: {why}. It is tried again")
        return Verdict(State.RETRYING, "creating_failed", told, say("to be made"), retry_at=mirror.failing.due_at)
    told = sentence(f"new: the repository in {mirror.region} is being made")
    return Verdict(State.NEW, "creating", told)


def _stale_source(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    looked_at = mirror.looked_at
    if looked_at is None or not is_stale(looked_at, now, targets):
        return None
    unknown = sentence(f"the source was last looked at {_ago(looked_at, now)}, so nobody knows what it has now")
    if mirror.look_error:
        told = sentences(unknown, _unreachable(mirror))
        return Verdict(State.UNKNOWN, "source_unreachable", told, say("source not reached"), looked_at)
    told = sentences(unknown, _ask_for_workers())
    return Verdict(State.UNKNOWN, "not_looked", told, say("no look at the source"), looked_at)


def _stale_destination(mirror: MirrorFacts, now: datetime, targets: Targets) -> Verdict | None:
    looked_at = mirror.destination_looked_at
    if looked_at is None or not is_stale(looked_at, now, targets):
        return None
    unknown = sentence(f"{mirror.region} was last looked at {_ago(looked_at, now)}, so nobody knows what it has now")
    if mirror.failing:
        why = sentence(f"the last try failed: {mirror.failing.outcome.rstrip('.')}. It is tried again")
        told = sentences(unknown, why)
        return Verdict(State.UNKNOWN, "destination_unreachable", told, say("destination not reached"), looked_at)
    told = sentences(unknown, _ask_for_workers())
    return Verdict(State.UNKNOWN, "not_looked", told, say("no look at the destination"), looked_at)


def _ago(moment: datetime, now: datetime) -> str:
    return f"{in_words((now - moment).total_seconds())} ago"


def _ask_for_workers() -> Phrase:
    return say("Check that the controller and the workers are running.")


def _unreachable(mirror: MirrorFacts) -> Phrase:
    error = mirror.look_error.rstrip(".")
    return sentence(f"the look at {mirror.source_region} failed: {error}. It is repeated; the mirror keeps what it has")


# --- one branch -----------------------------------------------------------------------------------------------------


def _explain_branch(
    branch: BranchFacts, mirror: MirrorFacts, standing: Verdict | None, now: datetime, targets: Targets
) -> Verdict:
    if standing:
        return replace(standing, brief=_waiting_commits(branch) or standing.brief)
    case = _Case(mirror, branch, now, targets)
    for rule in _BRANCH_RULES:
        verdict = rule(case)
        if verdict:
            return _tell_inferred(branch, verdict)
    return _tell_inferred(branch, _if_late(case, _retrying(case) or _rewound(case) or _syncing(case)))


def _tell_inferred(branch: BranchFacts, verdict: Verdict) -> Verdict:
    """A branch shows an older commit in the meantime: nobody has seen it there at the source."""
    if not branch.inferred:
        return verdict
    shows = sentence("until then it shows ", short(branch.mirror_head), ", inferred from the history")
    return replace(verdict, sentence=sentences(verdict.sentence, shows))


def _waiting_commits(branch: BranchFacts) -> Phrase:
    return say(f"{count(branch.pending, 'commit waits', 'commits wait')}") if branch.pending else say()


def _behind(case: _Case) -> Phrase:
    """The beginning of a sentence: "main is 4 commits and 14 min behind"."""
    late = f" and {in_words(case.lag)}" if case.lag >= 1 else ""
    commits = count(case.branch.pending, "commit")
    if case.branch.mirror_head:
        return say(name(case.branch.name), f" is {commits}{late} behind")
    waits = f", and has waited {in_words(case.lag)} for its first commit" if case.lag >= 1 else ""
    return say(name(case.branch.name), f" is not in {case.mirror.region} yet{waits}")


def _tampered(case: _Case) -> Verdict | None:
    branch, region = case.branch, case.mirror.region
    if branch.uncommitted:
        told = sentences(
            sentence("somebody wrote to ", name(branch.name), f" in {region} by force, and readers see it"),
            say("Undo the uncommitted changes of that branch there, or have that done here."),
        )
        return Verdict(State.TAMPERED, "uncommitted_change", told, say("uncommitted change at the mirror"))
    if branch.stray and branch.source_head:
        told = sentences(
            sentence("somebody made ", name(branch.name), f" in {region} before this mirror did, and readers see it"),
            sentence("it is moved to the source's as soon as a commit of that is complete"),
        )
        return Verdict(State.TAMPERED, "stray_branch", told, say("not made by this mirror"))
    if branch.stray:
        told = sentences(
            sentence(name(branch.name), f" is only in {region}; this mirror did not make it"),
            say("Delete it there, or make it at the source."),
        )
        return Verdict(State.TAMPERED, "stray_branch", told, say("not made by this mirror"))
    return None


def _unselected(case: _Case) -> Verdict | None:
    branch = case.branch
    if branch.selected:
        return None
    what, brief = "stays where it is", "kept as it is"
    if branch.dropped:
        what, brief = f"is being deleted in {case.mirror.region}", "being deleted here"
    told = sentence(name(branch.name), f" is not selected for this mirror and {what}")
    return Verdict(State.UNSELECTED, "not_selected", told, say(brief), branch.advanced_at)


def _leaving(case: _Case) -> Verdict | None:
    branch = case.branch
    if not (branch.gone or branch.missing_since):
        return None
    when, brief = "will be deleted here once a second look confirms it", "until a second look"
    if branch.gone:
        when, brief = "is being deleted here too", "being deleted here"
    if branch.default:
        when, brief = "stays here, since the default branch is never deleted", "stays here"
    told = sentence(name(branch.name), f" is gone at the source and {when}")
    return Verdict(State.LEAVING, "deleted_at_source", told, say(brief), branch.missing_since)


def _moved(case: _Case) -> Verdict | None:
    """Somebody moved it, or its destination was restored: readers do not see what this mirror promoted."""
    branch, region = case.branch, case.mirror.region
    if not branch.misplaced:
        return None
    what = (
        say(" is at ", short(branch.mirror_head), f" in {region}")
        if branch.mirror_head
        else say(f" is gone in {region}")
    )
    told = sentences(
        sentence(name(branch.name), what, ", not where this mirror left it"),
        sentence("it is put back as soon as that can be done"),
        _last_failure(case),
    )
    return Verdict(State.TAMPERED, "moved_at_the_mirror", told, say("not where this mirror left it"))


def _last_failure(case: _Case) -> Phrase:
    failing = case.mirror.failing
    return sentence("the last try failed: ", failing.outcome.rstrip(".")) if failing else say()


def _unproven(case: _Case) -> Verdict | None:
    """Readers see a head that is not known to be whole now, whether it is what the source has or not."""
    branch = case.branch
    if branch.proven or not branch.mirror_head:
        return None
    region, head = case.mirror.region, short(branch.mirror_head)
    worst = min(branch.standing_needs, key=lambda commit: not commit.hopeless, default=None)
    if worst is None:
        told = sentences(
            sentence(name(branch.name), " shows ", head, f" in {region}, which is not proven whole there now"),
            say("It is being checked; until then readers may meet something missing."),
        )
        return Verdict(State.UNPROVEN, "head_not_proven", told, say("head is being checked"))
    lack = describe_lack(worst, region=region, source_region=case.mirror.source_region)
    told = sentences(
        sentence(name(branch.name), " is damaged: readers of ", head, f" in {region} may meet this: ", lack.clause),
        lack.advice,
    )
    since = worst.lacking_since
    return Verdict(State.DAMAGED, "head_damaged", told, say("head is damaged"), since, worst.look_at)


def _up_to_date(case: _Case) -> Verdict | None:
    branch = case.branch
    if branch.pending or not branch.mirror_head:
        return None
    told = sentence(name(branch.name), " is up to date")
    return Verdict(State.UP_TO_DATE, "up_to_date", told, since=branch.advanced_at)


def _in_trouble(case: _Case) -> Verdict | None:
    """Failed, tampered or blocked: a commit that the branch needs lacks something, for long or for good."""
    commit = case.worst
    if commit is None:
        return None
    since = commit.lacking_since
    waited = case.now - since if since else timedelta(seconds=case.lag)
    if not commit.hopeless and waited < case.targets.blocked_after:
        return None
    lack = describe_lack(commit, region=case.mirror.region, source_region=case.mirror.source_region)
    state = {"refused": State.FAILED, "tampered": State.TAMPERED}.get(commit.record, State.BLOCKED)
    told = sentences(sentence(_behind(case), ": ", lack.clause), lack.advice)
    return Verdict(state, lack.code, told, lack.brief, since, commit.look_at)


def _rewound(case: _Case) -> Verdict | None:
    if not (case.branch.rewound and case.branch.mirror_head):
        return None
    head = short(case.branch.source_head)
    told = sentences(
        sentence("the source moved ", name(case.branch.name), " to ", head, ", not forward from where it was"),
        sentence("the mirror follows once that commit is complete"),
    )
    return Verdict(State.REWOUND, "source_rewound", told, say("waits for ", head))


def _retrying(case: _Case) -> Verdict | None:
    failing = case.mirror.failing
    if failing is None:
        if not case.mirror.look_error:
            return None
        told = sentences(sentence(_behind(case)), _unreachable(case.mirror))
        return Verdict(State.RETRYING, "source_unreachable", told, say("source not reached"))
    told = sentences(sentence(_behind(case), f": {_failed(failing)}"), say("It is tried again."))
    brief = say(f"“{failing.kind}” failed {count(failing.failures, 'time')}")
    return Verdict(State.RETRYING, f"{failing.kind}_failed", told, brief, retry_at=failing.due_at)


def _if_late(case: _Case, verdict: Verdict) -> Verdict:
    """Work goes on, but longer than aimed at. A first copy takes what it takes."""
    mirror = case.mirror
    copied = mirror.counted.settled or any(branch.mirror_head and not branch.inferred for branch in mirror.branches)
    if not copied or timedelta(seconds=case.lag) <= case.targets.late_after:
        return verdict
    target = in_words(case.targets.late_after.total_seconds())
    told = sentences(verdict.sentence, say(f"The target is {target}."))
    return replace(verdict, state=State.LATE, sentence=told)


def _syncing(case: _Case) -> Verdict:
    at_work = _at_work(case)
    return replace(at_work, sentence=sentence(_behind(case), ": ", at_work.sentence))


def _at_work(case: _Case) -> Verdict:
    """Which step the newest commit is in. The sentence is only its second half."""
    commit = case.branch.newest
    head = short(case.branch.source_head)
    if commit is None or commit.record == "pending":
        return Verdict(State.SYNCING, "copying_record", _copying(case), say("copying ", head))
    if commit.promotable:
        told = say(head, " is complete and about to be promoted")
        return Verdict(State.SYNCING, "promoting", told, say("promoting ", head))
    if case.worst is not None:
        return _arriving(case, case.worst)
    progress = _progress(case)
    told = say(head, " is being validated", f" ({progress})" if progress else "")
    return Verdict(State.VALIDATING, "validating", told, say(progress) if progress else say("validating ", head))


def _copying(case: _Case) -> Phrase:
    copying = case.mirror.copying
    if copying > 1:
        return say(f"the records of {copying:,} commits are being copied")
    return say("the record of ", short(case.branch.source_head), " is being copied")


def _arriving(case: _Case, commit: CommitFacts) -> Verdict:
    lack = describe_lack(commit, region=case.mirror.region, source_region=case.mirror.source_region)
    return Verdict(State.SYNCING, lack.code, say(lack.clause, " yet"), lack.brief, commit.lacking_since, commit.look_at)


def _progress(case: _Case) -> str:
    run = case.mirror.run
    if run and run.ranges:
        return f"{run.ranges_done:,} of {count(run.ranges, 'range')}"
    if case.mirror.checking > 1:
        return f"{case.mirror.checking:,} commits to check"
    return ""


_BRANCH_RULES: tuple[Callable[[_Case], Verdict | None], ...] = (
    _tampered,
    _unselected,
    _leaving,
    _moved,
    _unproven,
    _up_to_date,
    _in_trouble,
)


# --- one commit -----------------------------------------------------------------------------------------------------


def stage_of(commit: CommitFacts | None, *, now: datetime, targets: Targets, validating: bool = False) -> Stage:
    """How far a commit has come that its branch has not been promoted to, or past."""
    if commit is None:
        return Stage.WAITING
    if commit.waived is not None:
        return Stage.WAIVED
    if commit.promotable:
        return Stage.READY
    if commit.data == "gone":
        return Stage.GONE
    if commit.in_trouble and (commit.hopeless or _waited(commit, now) >= targets.blocked_after):
        return Stage.BLOCKED
    if commit.record == "accepted" and commit.data in ("unknown", "waiting") and (validating or commit.metadata_at):
        return Stage.CHECKING
    return Stage.WAITING


def _waited(commit: CommitFacts, now: datetime) -> timedelta:
    return now - commit.lacking_since if commit.lacking_since else timedelta()
