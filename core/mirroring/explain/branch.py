"""How one branch is doing. Rules are tried in order; the first that applies speaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.errors import NoBucket
from core.mirroring.explain.blocker_text import describe_lack
from core.mirroring.explain.standing import TELLS_MORE
from core.mirroring.explain.verdict import (
    Verdict,
    failed_times,
    state_of,
    tell_failing,
    tell_unreachable,
    what_follows,
)
from core.mirroring.facts import BranchFacts, CommitFacts, MirrorFacts
from core.mirroring.rpo import Targets, in_words, is_destination_stale, is_stale, lag
from core.mirroring.states import State, Tone
from core.text.phrases import SHORT_ID, Phrase, code, count, name, say, sentence, sentences, short

NO_BUCKET = NoBucket.permanent


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
        """The commit in trouble to speak of."""
        return worst_of(self.branch.troubled)


def worst_of(troubled: Sequence[CommitFacts]) -> CommitFacts | None:
    """Of commits in trouble, the oldest first, the one to speak of: what waiting won't help, then the oldest."""
    return min(troubled, key=lambda commit: not commit.hopeless, default=None)


def explain_branch(
    branch: BranchFacts, mirror: MirrorFacts, standing: Verdict | None, now: datetime, targets: Targets
) -> Verdict:
    """How a branch is doing. `standing`: what holds for the whole mirror, and so for each of its branches."""
    case = _Case(mirror, branch, now, targets)
    if standing:
        return _worse(case, standing) or replace(standing, brief=_waiting_commits(branch) or standing.brief)
    for rule in _BRANCH_RULES:
        verdict = rule(case)
        if verdict:
            return _tell_inferred(branch, verdict)
    return _tell_inferred(branch, _if_late(case, _unread(case) or _retrying(case) or _rewound(case) or _syncing(case)))


def _worse(case: _Case, standing: Verdict) -> Verdict | None:
    """What readers of the branch meet, and somebody has to see to, is told in a pause too, and where nobody knows what
    else there is."""
    if standing.state not in TELLS_MORE or case.mirror.elsewhere:
        return None
    if case.branch.stray and is_stale(case.mirror.looked_at, case.now, case.targets):
        return None  # the source may have it by now, or have had it all along
    seen = standing.state is State.PAUSED or not is_destination_stale(
        case.mirror.destination_looked_at, case.now, case.targets
    )
    rules = (_tampered, _unselected, _leaving, _moved, _unproven) if seen else (_unselected, _leaving, _unproven)
    verdict = next(filter(None, (rule(case) for rule in rules)), None)
    if verdict is None or verdict.state.tone is not Tone.BAD:
        return None
    return replace(verdict, sentence=sentences(verdict.sentence, standing.sentence))


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
    commits = f"{'at least ' if case.branch.unread else ''}{count(case.branch.pending, 'commit')}"
    if case.branch.mirror_head:
        return say(name(case.branch.name), f" is {commits}{late} behind")
    if first_copy := case.mirror.first_copy:
        done, total = first_copy
        copied = f"{done:,} of {count(total, 'commit')} complete"
        return say("first copy to ", case.mirror.region, f", {copied}: ", name(case.branch.name), " is not there yet")
    waits = f", and has waited {in_words(case.lag)} for its first commit" if case.lag >= 1 else ""
    return say(name(case.branch.name), f" is not in {case.mirror.region} yet{waits}")


def _tampered(case: _Case) -> Verdict | None:
    branch, region = case.branch, case.mirror.region
    if branch.uncommitted:
        phrase = sentences(
            sentence("somebody wrote to ", name(branch.name), f" in {region} without a commit, and readers see it"),
            say("Undo the uncommitted changes here, or reset the branch there."),
        )
        return Verdict(State.TAMPERED, "uncommitted_change", phrase, say("uncommitted change at the mirror"))
    if not branch.stray:
        return None
    phrase = sentences(
        sentence(name(branch.name), f" exists only in {region}; this mirror did not create it"),
        say("Delete it there, or create it at the source."),
    )
    if branch.source_head:
        phrase = sentences(
            sentence(
                "somebody created ", name(branch.name), f" in {region} before this mirror did, and readers see it"
            ),
            sentence("it moves to the source's head as soon as a commit of the source is complete"),
        )
    return Verdict(State.TAMPERED, "stray_branch", phrase, say("not created by this mirror"))


def _unselected(case: _Case) -> Verdict | None:
    branch = case.branch
    if branch.selected:
        return None
    if not branch.dropped and (worse := _moved(case) or _damaged(case)):
        return worse
    what, brief = "stays where it is", "kept as it is"
    if branch.dropped:
        what, brief = f"is being deleted in {case.mirror.region}", "being deleted here"
    phrase = sentence(name(branch.name), f" is not selected for this mirror and {what}")
    return Verdict(State.UNSELECTED, "not_selected", phrase, say(brief), branch.advanced_at)


def _leaving(case: _Case) -> Verdict | None:
    branch = case.branch
    if not (branch.gone or branch.missing_since) or case.mirror.looked_at is None:
        return None
    if branch.default and (worse := _damaged(case)):
        return worse
    when, brief = "will be deleted here once a second check confirms it", "deletion to be confirmed by a second check"
    if branch.gone:
        when, brief = "is being deleted here too", "being deleted here"
    if branch.default:
        when, brief = "stays here, since the default branch is never deleted", "stays here"
    phrase = sentence(name(branch.name), f" was deleted at the source and {when}")
    return Verdict(State.LEAVING, "deleted_at_source", phrase, say(brief), branch.missing_since)


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
    phrase = sentences(
        sentence(name(branch.name), what, ", not where this mirror left it"),
        sentence("it is put back as soon as possible"),
        _last_failure(case),
    )
    return Verdict(State.TAMPERED, "moved_at_the_mirror", phrase, say("not where this mirror left it"))


def _last_failure(case: _Case) -> Phrase:
    failing = case.mirror.failing_of("promote") or case.mirror.worst_failing
    return sentence("the last try failed: ", failing.outcome.rstrip(".")) if failing else say()


def _unproven(case: _Case) -> Verdict | None:
    """Readers see a head that is not known to be whole now, whether it is what the source has or not."""
    branch = case.branch
    if branch.proven or not branch.mirror_head:
        return None
    region, head = case.mirror.region, short(branch.mirror_head)
    worst = min(branch.standing_needs, key=lambda commit: not commit.hopeless, default=None)
    if worst is None:
        phrase = sentences(
            sentence(name(branch.name), " shows ", head, f" in {region}, which is not known to be complete there now"),
            say("It is being validated; until then readers may find something missing."),
        )
        return Verdict(State.UNPROVEN, "head_not_proven", phrase, say("head is being validated"))
    lack = describe_lack(worst, region=region, source_region=case.mirror.source_region)
    phrase = sentences(
        sentence(name(branch.name), " is damaged. Readers of ", head, f" in {region} are affected: ", lack.clause),
        lack.advice,
    )
    since = worst.lacking_since
    return Verdict(State.DAMAGED, "head_damaged", phrase, say("head is damaged"), since, worst.look_at)


def _damaged(case: _Case) -> Verdict | None:
    """Readers see a head of which something is known to be missing or wrong."""
    verdict = _unproven(case)
    return verdict if verdict and verdict.state is State.DAMAGED else None


def _unseen(case: _Case) -> Verdict | None:
    """What the mirror shows is whole, and nobody knows whether the source still has that."""
    branch = case.branch
    if not branch.unseen and case.mirror.looked_at is not None:
        return None
    since_then = "yet" if not branch.unseen else "since this mirror's records were rebuilt"
    where = f" has not been read in {case.mirror.source_region} {since_then}; the first check is under way"
    phrase = sentence(name(branch.name), where)
    return Verdict(State.UNKNOWN, "not_looked_yet", phrase, say("not read yet"))


def _unlooked(case: _Case) -> Verdict | None:
    """It is where it should be, and nobody knows whether readers of it see more than its head."""
    branch, region, since = case.branch, case.mirror.region, case.branch.unlooked_since
    if branch.pending or not branch.mirror_head or not is_destination_stale(since, case.now, case.targets):
        return None
    failed = f" in {region} could not be checked for {in_words(lag(since, case.now))}"
    phrase = sentences(
        sentence("uncommitted changes on ", name(branch.name), failed, f": {branch.look_error.rstrip('.')}"),
        say("The check is repeated."),
    )
    return Verdict(State.UNKNOWN, "uncommitted_unknown", phrase, say("uncommitted changes not checked"), since)


def _up_to_date(case: _Case) -> Verdict | None:
    branch = case.branch
    if branch.pending or not branch.mirror_head:
        return None
    phrase = sentence(name(branch.name), " is up to date")
    return Verdict(State.UP_TO_DATE, "up_to_date", phrase, since=branch.advanced_at)


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
    phrase = sentences(sentence(_behind(case), ": ", lack.clause), lack.advice)
    return Verdict(state, lack.code, phrase, lack.brief, since, commit.look_at)


def _rewound(case: _Case) -> Verdict | None:
    if not (case.branch.rewound and case.branch.mirror_head):
        return None
    head = short(case.branch.source_head)
    phrase = sentences(
        sentence("the source moved ", name(case.branch.name), " to ", head, ", not forward from where it was"),
        sentence("the mirror follows once that commit is complete"),
    )
    return Verdict(State.REWOUND, "source_rewound", phrase, say("waits for ", head))


def _unread(case: _Case) -> Verdict | None:
    """The source went on, nobody knows by which commits."""
    if not case.branch.unread:
        return None
    head = code(case.branch.source_head[:SHORT_ID])  # there is no page of it to lead to
    phrase = sentences(
        sentence(_behind(case), ": the source is at ", head, ", whose history can't be read"),
        tell_unreachable(case.mirror) if case.mirror.look_error else say("Retrying."),
    )
    return Verdict(State.RETRYING, "source_unreadable", phrase, say("history unreadable"))


def _retrying(case: _Case) -> Verdict | None:
    failing, waited = case.mirror.worst_failing, timedelta(seconds=case.lag) >= case.targets.blocked_after
    if failing is None:
        if not case.mirror.look_error:
            return None
        phrase = sentences(sentence(_behind(case)), tell_unreachable(case.mirror))
        state = State.FAILED if waited and case.mirror.look_refused else State.RETRYING
        return Verdict(state, "source_unreachable", phrase, say("source not reached"))
    phrase = sentences(sentence(_behind(case), f": {tell_failing(failing)}"), what_follows(failing))
    state = state_of(failing) if waited else State.RETRYING  # what is only on its way may have nothing to do with it
    return Verdict(state, f"{failing.kind}_failed", phrase, say(failed_times(failing)), retry_at=failing.due_at)


def _without_bucket(case: _Case) -> Verdict | None:
    """All is missing in a bucket that is not there: no replication would bring it."""
    failing = case.mirror.worst_failing
    if failing is None or failing.refusal != NO_BUCKET or not failing.refused:
        return None
    return _retrying(case)


def _if_late(case: _Case, verdict: Verdict) -> Verdict:
    """Work goes on, but longer than aimed at. A first copy takes what it takes."""
    mirror = case.mirror
    if verdict.state is State.FAILED:
        return verdict
    if not shows_something(mirror) or timedelta(seconds=case.lag) <= case.targets.late_after:
        return verdict
    target = in_words(case.targets.late_after.total_seconds())
    phrase = sentences(verdict.sentence, say(f"The target is {target}."))
    return replace(verdict, state=State.LATE, sentence=phrase)


def shows_something(mirror: MirrorFacts) -> bool:
    """Whether a branch of it has a commit that the source's was seen to point to: its first copy goes on till then."""
    return bool(mirror.counted.settled) or any(branch.mirror_head and not branch.inferred for branch in mirror.branches)


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
        phrase = say(head, " is complete and about to be promoted")
        return Verdict(State.SYNCING, "promoting", phrase, say("promoting ", head))
    if case.worst is not None:
        return _arriving(case, case.worst)
    progress = _progress(case)
    phrase = say(head, " is being validated", f" ({progress})" if progress else "")
    return Verdict(State.VALIDATING, "validating", phrase, say(progress) if progress else say("validating ", head))


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
    _unseen,
    _unlooked,
    _up_to_date,
    _without_bucket,
    _in_trouble,
)
