"""From facts to a state, a reason and one sentence that says what is going on and what to do.

The pages and the API say the same, because both ask here. What holds for the whole mirror speaks first, else the branch
that is worst off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from core.installations.outages import tell_outage
from core.mirroring.explain.branch import explain_branch
from core.mirroring.explain.outages import blinding_outage, branch_if_reached, if_reached, outage_at
from core.mirroring.explain.standing import TELLS_MORE, failing_look, judge_standing
from core.mirroring.explain.verdict import Verdict, state_of, tell_failing, tell_unreachable, what_follows
from core.mirroring.facts import BranchFacts, Counted, MirrorFacts
from core.mirroring.rpo import Targets, in_words, is_destination_stale, lag
from core.mirroring.states import ASIDE, State
from core.text.phrases import Phrase, code, count, name, say, sentence, sentences

STUBBORN = 3
"""A duty of the mirror's that failed so often in a row is told although no commit waits for it."""

_STARTING = say("The worker that validates is starting.")
_WELL = Verdict(State.UP_TO_DATE, "up_to_date", say())


def explain(mirror: MirrorFacts, now: datetime, targets: Targets) -> tuple[Verdict, list[Verdict]]:
    """How the mirror is doing, and each of its branches in their order.

    What holds for all of it goes first, else its worst branch speaks, with a word on the others.
    """
    standing = judge_standing(mirror, now, targets)
    verdicts = [explain_branch(branch, mirror, standing, now, targets) for branch in mirror.branches]
    if standing:
        return _or_worse(mirror, standing, verdicts), verdicts
    if not verdicts and not mirror.counted.settled:
        return _not_looked(mirror, now), []
    worst = _of_worst(mirror, list(zip(mirror.branches, verdicts, strict=True)), now)
    told = if_reached(mirror, _with_upkeep(mirror, worst), now)
    told = _with_tags(mirror, _if_checked(mirror, told, now), now, targets)
    branches = [branch_if_reached(mirror, verdict, now) for verdict in verdicts]
    return _with_damage(mirror, told), [_branch_if_checked(mirror, verdict, now) for verdict in branches]


def _or_worse(mirror: MirrorFacts, standing: Verdict, verdicts: Sequence[Verdict]) -> Verdict:
    """What is known to be damaged or tampered with is so in a pause too, and while the source is not seen."""
    unseen = State.UNKNOWN.severity  # a look that is refused tells no more than one that nobody answers
    worst = max(
        [standing, *verdicts],
        key=lambda verdict: unseen if verdict.state is State.FAILED else verdict.state.severity,
    )
    told = standing.state in TELLS_MORE and not mirror.elsewhere
    return _with_damage(mirror, worst) if told else standing


def _not_looked(mirror: MirrorFacts, now: datetime) -> Verdict:
    outage = outage_at(mirror, mirror.source_region)
    if mirror.look_error or outage:
        unread = sentence("no branch of ", name(mirror.source), " could be read yet")
        why = tell_outage(outage, now) if outage else tell_unreachable(mirror)
        return Verdict(State.RETRYING, "source_unreachable", sentences(unread, why))
    phrase = sentence("no branch of ", name(mirror.source), " has been read yet; the first check is under way")
    return Verdict(State.NEW, "not_looked_yet", phrase)


def _with_upkeep(mirror: MirrorFacts, verdict: Verdict) -> Verdict:
    """Every branch is where it should be, but something else is not: a tag that can't be moved, a branch that can't be
    deleted, a file of the mirror's own that can't be written."""
    stubborn = [duty for duty in mirror.failing if duty.failures >= STUBBORN]
    if verdict.state is not State.UP_TO_DATE:
        return verdict
    if not stubborn:
        return _if_looked(mirror, verdict)
    why = [sentence(tell_failing(duty)) for duty in stubborn]
    worst = max(stubborn, key=lambda duty: duty.refused)  # else the one that failed most often
    phrase = sentences(verdict.sentence, *why, what_follows(worst))
    failed = f"{worst.kind}_failed"
    return replace(verdict, state=state_of(worst), reason_code=failed, sentence=phrase, retry_at=worst.due_at)


def _if_looked(mirror: MirrorFacts, verdict: Verdict) -> Verdict:
    """What was seen at the source is here, and the last looks at it have failed."""
    if mirror.look_failures < STUBBORN:
        return verdict
    phrase = sentences(verdict.sentence, tell_unreachable(mirror))
    state = State.FAILED if mirror.look_refused else State.RETRYING
    return replace(verdict, state=state, reason_code="source_unreachable", sentence=phrase)


def _if_checked(mirror: MirrorFacts, verdict: Verdict, now: datetime) -> Verdict:
    """All was proven whole, and nobody has looked since whether it still is."""
    if mirror.unchecked_since is None or verdict.state.severity >= State.UNKNOWN.severity:
        return verdict
    if mirror.checks_start and verdict.state is not State.UP_TO_DATE:
        return replace(verdict, sentence=sentences(verdict.sentence, _STARTING))
    advice = _STARTING if mirror.checks_start else say("Check that the workers of its “-spark” queue are running.")
    more = say() if verdict.state is State.UP_TO_DATE else verdict.sentence
    phrase = sentences(_unchecked(mirror, now), advice, more)
    since = mirror.unchecked_since
    return replace(verdict, state=State.UNKNOWN, reason_code="not_checked", sentence=phrase, since=since)


def _branch_if_checked(mirror: MirrorFacts, verdict: Verdict, now: datetime) -> Verdict:
    if mirror.unchecked_since is None or verdict.state is not State.UP_TO_DATE:
        return verdict
    return replace(verdict, state=State.UNKNOWN, reason_code="not_checked", sentence=_unchecked(mirror, now))


def _unchecked(mirror: MirrorFacts, now: datetime) -> Phrase:
    ago = in_words(lag(mirror.unchecked_since, now))
    return sentence(f"nothing has been validated for {ago}: whether {mirror.region} still has everything is not known")


def _with_tags(mirror: MirrorFacts, verdict: Verdict, now: datetime, targets: Targets) -> Verdict:
    """The destination's branches are seen, and its tags are not."""
    since = mirror.tags_unseen_since
    if not is_destination_stale(since, now, targets) or verdict.state.severity >= State.UNKNOWN.severity:
        return verdict
    failing = failing_look(mirror)
    why = sentence("the last try failed: ", failing.outcome.rstrip("."), ". Retrying") if failing else say()
    unknown = sentence(f"the tags in {mirror.region} could not be read for {in_words(lag(since, now))}")
    phrase = sentences(unknown, why, verdict.sentence)
    return replace(verdict, state=State.UNKNOWN, reason_code="tags_unseen", sentence=phrase, since=since)


def _with_damage(mirror: MirrorFacts, verdict: Verdict) -> Verdict:
    """What had been complete and is no more is said first; it is worse than anything that is only late."""
    number, example = mirror.waiting.damaged, mirror.waiting.example
    if not number:
        return verdict
    what = count(number, "object that was complete before is", "objects that were complete before are")
    what = f"more than {what}" if mirror.waiting.more_damaged else what
    named = say(" (", code(example), " among them)" if number > 1 else ")") if example else say()
    phrase = sentences(
        sentence(f"damaged: {what} missing or wrong in {mirror.region} now", named),
        say(f"No branch was moved back. Copy {'it' if number == 1 else 'them'} again from {mirror.source_region}."),
        verdict.sentence,
    )
    if verdict.state.severity > State.DAMAGED.severity:
        return replace(verdict, sentence=phrase)
    return replace(verdict, state=State.DAMAGED, reason_code="damaged", sentence=phrase)


def _of_worst(mirror: MirrorFacts, verdicts: Sequence[tuple[BranchFacts, Verdict]], now: datetime) -> Verdict:
    """The verdict on the branch that is worst off; branches that go, or are not selected, are only counted."""
    aside = [pair for pair in verdicts if pair[1].state in ASIDE]
    staying = [pair for pair in verdicts if pair[1].state not in ASIDE]
    counted = mirror.counted
    if not staying and not counted.settled:
        staying, aside = list(verdicts), []
    branch, worst = max(staying, key=lambda pair: _weight(pair[0], pair[1], now), default=(None, _WELL))
    if worst.state is State.UP_TO_DATE:
        left = any(other.pending for other, verdict in aside if verdict.state is State.LEAVING)
        phrase = _all_well(mirror, [other for other, _ in staying], whole=not left)
    else:
        others = [verdict for other, verdict in staying if other is not branch]
        sure = mirror.unchecked_since is None and blinding_outage(mirror) is None
        phrase = sentences(worst.sentence, _the_others(others, counted) if sure else say())
    return replace(worst, sentence=sentences(phrase, *_those_aside(mirror, aside)))


def _weight(branch: BranchFacts, verdict: Verdict, now: datetime) -> tuple[int, float, bool]:
    return verdict.state.severity, lag(branch.oldest_seen_at, now), branch.default


def _all_well(mirror: MirrorFacts, branches: Sequence[BranchFacts], *, whole: bool) -> Phrase:
    number = len(branches) + mirror.counted.settled
    only = branches[0].name if branches else mirror.counted.name
    which = say(f"all {number} branches are") if number > 1 else say(name(only), " is")
    proof = f"{mirror.region} has every commit that was seen in {mirror.source_region}"
    return sentence(which, " up to date", f": {proof}" if whole else "")


def _those_aside(mirror: MirrorFacts, aside: Sequence[tuple[BranchFacts, Verdict]]) -> Iterator[Phrase]:
    """How many branches go, and what of these never arrived; how many are only kept."""
    leaving = [branch for branch, verdict in aside if verdict.state is State.LEAVING]
    if leaving:
        lacking = count(sum(branch.pending for branch in leaving), "commit")
        lack = f"; {lacking} seen there had not reached {mirror.region}" if any(b.pending for b in leaving) else ""
        yield sentence(f"{count(len(leaving), 'branch is', 'branches are')} deleted at the source{lack}")
    kept = len(aside) - len(leaving)
    if kept:
        yield sentence(f"{count(kept, 'branch is', 'branches are')} kept, but not mirrored")


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
