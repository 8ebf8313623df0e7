"""What is said of a replication rule and its links: a state, a word and a sentence, with what to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.mirroring.rpo import in_words
from core.mirroring.states import State
from core.pauses import Pause
from core.replicating.states import Code, Health
from core.text.phrases import Phrase, code, count, say, sentence, sentences

STATES = (
    State.BLOCKED,
    State.FROZEN,
    State.FAILED,
    State.UNKNOWN,
    State.RETRYING,
    State.PAUSED,
    State.SYNCING,
    State.NEW,
    State.UP_TO_DATE,
)
"""Those that a rule or a link may be in, the worst first: where nothing arrives any more comes before where some
objects don't."""


AT_SOURCE = frozenset(
    {
        Code.SOURCE_DOWN,
        Code.SOURCE_FAILED,
        Code.SOURCE_BUCKET_NOT_FOUND,
        Code.SOURCE_DENIED,
        Code.SOURCE_REFUSED,
    }
)
"""What the source is at fault for."""


@dataclass(frozen=True, slots=True)
class ScanFacts:
    """How the comparing of all places stands. Times are None for never."""

    whole_at: datetime | None = None
    """When everything had been compared last."""
    error: str = ""
    """Why the last look failed, "" if it did not."""
    refused: bool = False
    """Whether no later look helps by itself."""
    named: bool = False
    """Whether events have named objects that nobody has looked at yet."""
    whole_takes: float = 0.0
    """How many seconds the last comparison of everything took, where it takes its time; else 0."""


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """A link to a target, from a `source`. `health`: up, down or blocked, `since` then, with what the store said;
    `pending`: objects that are to be copied, `oldest`: since when the first of these is; `failed`: those that were
    refused one by one; `skipped`: those that can't be copied as they are."""

    number: int
    uri: str
    region: str
    source: str = ""
    source_region: str = ""
    pause: Pause | None = None
    health: str = Health.UP
    since: datetime | None = None
    code: str = ""
    message: str = ""
    next_probe: datetime | None = None
    pending: int = 0
    pending_bytes: int = 0
    oldest: datetime | None = None
    failed: int = 0
    skipped: int = 0
    unlisted: str = ""
    """Why the target could not be listed the last time, "" if it could."""
    more: bool = False
    """Whether more is to be copied than is counted."""
    compared_at: datetime | None = None
    """When all of the source had last been compared with it; None: never yet."""
    fresh: bool = False
    """Whether it came so late that no whole comparison could take it along yet."""
    held_until: datetime | None = None
    """Until when nothing is begun, for a worker was lost whose last writes may still arrive."""
    stale: str = ""
    """Why nothing is written at the target before somebody confirms it, "" if it may be."""
    frozen: str = ""
    frozen_for_target: bool = False
    """Why nothing is deleted there before somebody confirms the source, "" if it may be."""
    asked: int = 0
    """So many deletions wait for somebody to approve them."""
    unsure: str = ""
    """Why it is not known what is to be deleted there, "" if it is."""
    deletes: int = 0
    """So many deletions are noted or due, those that wait for somebody too."""


@dataclass(frozen=True, slots=True)
class Told:
    """How a rule, or a link, is doing."""

    state: State
    word: str
    sentence: Phrase

    @property
    def rank(self) -> int:
        """The worst has 0."""
        return STATES.index(self.state)


def tell_link(link: LinkFacts, scan: ScanFacts, now: datetime, rule_pause: Pause | None = None) -> Told:
    """The state of a link, and why. What a store refuses is said before what some objects lack."""
    if pause := rule_pause or link.pause:
        whose = "the rule is " if rule_pause else ""
        return Told(State.PAUSED, "Paused", sentence(whose, pause.told(now), _waiting(link)))
    if link.stale:
        return Told(State.BLOCKED, "Stale", _stale(link))
    if link.health == Health.BLOCKED:
        return Told(State.BLOCKED, "Blocked", _blocked(link, now))
    if link.health == Health.DOWN:
        return Told(State.RETRYING, "Down", _down(link, now))
    if link.frozen:
        return Told(State.FROZEN, "Frozen", _frozen(link, now))
    if link.asked:
        return Told(State.FROZEN, "Deletes waiting", _asked(link, now))
    if link.failed:
        return Told(State.FAILED, "Failed", _failed(link, now))
    if link.unlisted:
        unknown = sentence(code(link.uri), f" can't be listed, so what it lacks is not known: {link.unlisted}")
        return Told(State.UNKNOWN, "Unknown", sentences(unknown, _copying(link, now) if link.pending else say()))
    if link.pending or link.more:
        return Told(State.SYNCING, "Waiting" if link.held_until else "Copying", _copying(link, now))
    if link.deletes:
        text = f"{count(link.deletes, 'object')} to be deleted, once the source has lacked them for a minute"
        return Told(State.SYNCING, "Deleting", sentence(f"{text} and all has been compared"))
    if not (link.compared_at or scan.error) and (link.fresh or not scan.whole_at):
        return Told(State.NEW, "Comparing", say("Both places are being compared for the first time."))
    if scan.error or link.compared_at is None or (scan.whole_at and link.compared_at < scan.whole_at):
        return Told(State.UNKNOWN, "Unknown", _not_compared(link, scan, now))
    if scan.named:
        return Told(State.SYNCING, "Copying", say("Objects that events have named are being looked at."))
    ago = in_words((now - link.compared_at).total_seconds())
    but = f", but {count(link.skipped, 'object')} that can't be copied as they are" if link.skipped else ""
    takes = f"; a whole comparison takes {in_words(scan.whole_takes)} here" if scan.whole_takes else ""
    told = f"it has all that the source had{but}, compared {ago} ago{takes}"
    return Told(State.UP_TO_DATE, "Up to date", sentence(told))


def _not_compared(link: LinkFacts, scan: ScanFacts, now: datetime) -> Phrase:
    """The target did not answer while all others were compared, or nothing can be."""
    ago = f"last compared {in_words((now - link.compared_at).total_seconds())} ago" if link.compared_at else ""
    last = ago or "it was never compared"
    if link.unsure and not scan.error:
        return sentence(f"not all that is to be deleted is known: {link.unsure}; {last}")
    why = scan.error or "the target could not be read when all was compared"
    return sentence(f"what it lacks is not known: {why}; {last}")


def _waiting(link: LinkFacts) -> str:
    """The end of a sentence: what is not copied meanwhile."""
    wait = link.pending + link.failed
    if link.more:
        return f"; more than {count(wait, 'object waits', 'objects wait')}"
    return f"; {count(wait, 'object waits', 'objects wait')}" if wait else "; what changes is noted"


def _lasting(link: LinkFacts, now: datetime) -> str:
    return f" for {in_words((now - link.since).total_seconds())}" if link.since else ""


def _next(link: LinkFacts, now: datetime) -> str:
    """When it is tried again."""
    if link.next_probe is None or link.next_probe <= now:
        return "now"
    return f"in {in_words((link.next_probe - now).total_seconds())}"


def _blocked(link: LinkFacts, now: datetime) -> Phrase:
    if link.code == Code.NOT_CONFIGURED:
        return sentence(f"nothing can be copied{_lasting(link, now)}: {link.message}")
    who = code(link.source if link.code in AT_SOURCE else link.uri)
    told = sentence(who, f" has refused everything{_lasting(link, now)}: {link.message}")
    return sentences(told, sentence(f"One object is tried {_next(link, now)}, then the others{_waiting(link)}"))


def _stale(link: LinkFacts) -> Phrase:
    told = sentence(f"nothing is written: {link.stale}")
    return sentences(told, say("Look what lies there; then confirm the target, and all that it lacks is copied."))


def _frozen(link: LinkFacts, now: datetime) -> Phrase:
    told = sentence(f"nothing is deleted: {link.frozen}")
    mend = "Remove one of the two" if link.frozen_for_target else "Look at the source"
    told = sentences(told, say(f"{mend}; then confirm the source, and deletions are judged anew."))
    return sentences(told, _copying(link, now) if link.pending else say())


def _asked(link: LinkFacts, now: datetime) -> Phrase:
    told = sentence(f"{count(link.asked, 'deletion waits', 'deletions wait')} for somebody to approve or reject them")
    return sentences(told, _copying(link, now) if link.pending else say())


def _down(link: LinkFacts, now: datetime) -> Phrase:
    region = link.source_region if link.code in AT_SOURCE else link.region
    told = sentence(f"the store of {region} has not answered{_lasting(link, now)}: {link.message}")
    return sentences(told, sentence(f"It is tried again {_next(link, now)}{_waiting(link)}"))


def _failed(link: LinkFacts, now: datetime) -> Phrase:
    told = sentence(f"{count(link.failed, 'object')} could not be copied: tried again once a day, and by Retry")
    return sentences(told, _copying(link, now) if link.pending else say())


def _copying(link: LinkFacts, now: datetime) -> Phrase:
    oldest = f", the oldest for {in_words((now - link.oldest).total_seconds())}" if link.oldest else ""
    more = "more than " if link.more else ""
    told = sentence(f"{more}{count(link.pending, 'object')} to go{oldest}")
    return sentences(told, _held(link.held_until, now)) if link.held_until else told


def _held(until: datetime, now: datetime) -> Phrase:
    left = in_words(max(1.0, (until - now).total_seconds()))
    return sentence(f"Nothing is begun for {left}: a worker was lost, and what it was writing may still arrive")


# --- the rule ---------------------------------------------------------------------------------------------------------


def tell_rule(links: Sequence[tuple[LinkFacts, Told]], scan: ScanFacts, pause: Pause | None, now: datetime) -> Told:
    """The state of a rule: that of its worst link, unless its source can't be listed."""
    if pause:
        return Told(State.PAUSED, "Paused", sentence(pause.told(now), ": nothing is copied, what changes is noted"))
    worst = min((told for _, told in links), key=lambda told: told.rank)
    unread = _unread(scan, now)
    if unread is not None and unread.rank <= worst.rank:
        return Told(unread.state, unread.word, unread.sentence)
    many = len(links) > 1
    alike = [link for link, told in links if told.state is worst.state]
    phrase = worst.sentence if not many else _of_several(alike, worst, len(links))
    return Told(worst.state, worst.word, sentences(phrase, unread.sentence if unread else say()))


def _unread(scan: ScanFacts, now: datetime) -> Told | None:
    """What is said where the places could not be compared, None where they were."""
    if not scan.error:
        return None
    last = f"; last compared {in_words((now - scan.whole_at).total_seconds())} ago" if scan.whole_at else ""
    phrase = sentence(f"the places can't be compared: {scan.error}{last}")
    return Told(State.FAILED, "Failed", phrase) if scan.refused else Told(State.UNKNOWN, "Unknown", phrase)


_OF_TARGETS = {
    State.BLOCKED: ("is blocked", "are blocked"),
    State.FROZEN: ("does not follow deletions", "do not follow deletions"),
    State.FAILED: ("lacks objects that failed", "lack objects that failed"),
    State.UNKNOWN: ("could not be compared", "could not be compared"),
    State.RETRYING: ("is down", "are down"),
    State.PAUSED: ("is paused", "are paused"),
    State.SYNCING: ("is being copied to", "are being copied to"),
    State.NEW: ("is being compared for the first time", "are being compared for the first time"),
    State.UP_TO_DATE: ("is up to date", "are up to date"),
}


def _of_several(alike: Sequence[LinkFacts], worst: Told, whole: int) -> Phrase:
    """Of several links: how many are so, and what is said of the first of them."""
    number = len(alike)
    every = "both targets" if whole == 2 else f"all {whole} targets"
    who = every if number == whole else f"{number} of {whole} targets"
    told = sentence(f"{who} {_OF_TARGETS[worst.state][number != 1]}")
    if worst.state in (State.UP_TO_DATE, State.NEW):
        return told
    if code(alike[0].uri).parts[0] in worst.sentence.parts:
        return sentences(told, worst.sentence)
    return sentences(told, say(code(alike[0].uri), ": ", worst.sentence))
