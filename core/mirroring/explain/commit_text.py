"""What is going on with one commit at a mirror, and what to do about it; pure."""

from __future__ import annotations

from collections.abc import Sequence

from core.mirroring.explain.blocker_text import describe_lack
from core.mirroring.explain.verdict import Verdict
from core.mirroring.facts import CommitFacts
from core.mirroring.states import Stage
from core.text.phrases import Phrase, count, name, say, sentence, sentences

SETTLED = (Stage.HEAD, Stage.PAST)


def explain_commit(
    commit: CommitFacts,
    *,
    stage: Stage,
    heads: Sequence[str],
    needs: Sequence[CommitFacts],
    region: str,
    source_region: str,
    standing: Verdict | None = None,
) -> Phrase:
    """One or a few sentences. `heads`: branches that point to it; `needs`: commits in trouble that it waits for.

    `standing` is what holds for the whole mirror, like a pause; it concerns a commit that is on its way.
    """
    if stage in SETTLED:
        return sentences(sentence(*_where(commit, heads, region)), sentence(_how_much(commit, region)))
    if stage is Stage.READY:
        phrase = sentence(
            f"all of it has arrived in {region} and has been validated; its branch is about to move to it"
        )
    elif stage is Stage.GONE and not commit.things:
        lost = sentence("part of it is missing on both sides, so no branch can move to it")
        phrase = sentences(lost, sentence(f"restore it in {source_region}, or move the branch on at the source"))
    elif needs:
        phrase = _waiting(commit, needs, stage, region, source_region)
    else:
        phrase = _on_its_way(commit, stage, region)
    return sentences(phrase, standing.sentence) if standing else phrase


def _where(commit: CommitFacts, heads: Sequence[str], region: str) -> tuple[Phrase | str, ...]:
    if heads:
        others = f" and {len(heads) - 1} more" if len(heads) > 1 else ""
        points = "point" if others else "points"
        return name(heads[0]), f"{others} {points} to it in {region}"
    if commit.promoted_at:
        return (f"a branch pointed to it in {region} and has moved on",)
    if commit.superseded_at:
        return (f"its branch in {region} skipped it and moved to a newer commit",)
    return (f"no branch in {region} is waiting for it",)


def _how_much(commit: CommitFacts, region: str) -> str:
    """What of it is there. It is not said again what later checks found: regions and blockers tell that."""
    if commit.data == "complete":
        return f"all of it has arrived in {region} and has been validated"
    if commit.data == "unchecked":
        return f"its record is in {region}; its objects are not validated, since this mirror validates only heads"
    return {
        "gone": "part of it is missing on both sides, or was waived, so it can't be read in full",
        "waiting": "some of its data has not arrived",
    }.get(commit.data, "none of its data has been validated yet")


def _waiting(
    commit: CommitFacts, needs: Sequence[CommitFacts], stage: Stage, region: str, source_region: str
) -> Phrase:
    """The commit in trouble to speak of: what waiting won't help first, then the oldest."""
    worst = min(needs, key=lambda need: not need.hopeless)
    lack = describe_lack(worst, region=region, source_region=source_region)
    itself = worst.commit_id == commit.commit_id
    begins = say() if itself else say("it waits for a commit that it descends from: ")
    advised = worst.hopeless or stage is Stage.BLOCKED
    others = len(needs) - 1
    waiting = count(others, "other commit that it needs is", "other commits that it needs are")
    more = sentence(f"{waiting} waiting too") if others else say()
    return sentences(sentence(begins, lack.clause), lack.advice if advised else say(), more)


def _on_its_way(commit: CommitFacts, stage: Stage, region: str) -> Phrase:
    if commit.record == "pending":
        return sentence("its record has not been copied yet")
    if commit.data == "complete":
        return sentence(
            f"all of it has arrived in {region} and has been validated; it waits for commits that it descends from"
        )
    if commit.metadata_at:
        return sentence(f"its metadata has arrived in {region}; its objects are being checked")
    if stage is Stage.CHECKING:
        return sentence(f"its record has been copied; it is being checked in {region}")
    return sentence(f"its record has been copied; what it names has not been looked for in {region} yet")
