"""What nobody knows of a mirror while a service of one of its regions does not answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from core.installations.outages import Outage, Service, outage_phrase, tell_outage
from core.mirroring.explain.verdict import Verdict
from core.mirroring.facts import MirrorFacts
from core.mirroring.states import State
from core.text.phrases import Phrase, say, sentences


def is_blinding(outage: Outage, *, source_region: str, region: str) -> bool:
    """Whether nobody knows, because of it, if a mirror from one region in another is as its source.

    What the source's store alone does keeps new files back, and says nothing about what has been seen at both sides.
    """
    return outage.region == region or (outage.region == source_region and outage.service is Service.LAKEFS)


def blinding_outage(mirror: MirrorFacts) -> Outage | None:
    """The one to tell of where nobody knows whether a mirror is as its source, that of its own region first."""
    found = [
        one for one in mirror.outages if is_blinding(one, source_region=mirror.source_region, region=mirror.region)
    ]
    return min(found, key=lambda outage: outage.region != mirror.region, default=None)


def outage_at(mirror: MirrorFacts, region: str) -> Outage | None:
    """That of a region's lakeFS, by which nobody can look there."""
    return next((one for one in mirror.outages if (one.region, one.service) == (region, Service.LAKEFS)), None)


def if_reached(mirror: MirrorFacts, verdict: Verdict, now: datetime) -> Verdict:
    """All was well, or on its way, when both sides were seen last: now one of them can't be."""
    outage = blinding_outage(mirror)
    if outage is None or verdict.state.severity >= State.UNKNOWN.severity:
        return verdict
    before = _WAS_WELL if verdict.state is State.UP_TO_DATE else verdict.sentence
    return _unknown(mirror, verdict, outage, sentences(tell_outage(outage, now), before))


def branch_if_reached(mirror: MirrorFacts, verdict: Verdict, now: datetime) -> Verdict:
    """The same of a branch: what is said of one that is behind holds all the same."""
    outage = blinding_outage(mirror)
    if outage is None or verdict.state is not State.UP_TO_DATE:
        return verdict
    return _unknown(mirror, verdict, outage, sentences(outage_phrase(outage, 0, now), _WAS_WELL))


_WAS_WELL = say("It was up to date when it was last checked.")


def _unknown(mirror: MirrorFacts, verdict: Verdict, outage: Outage, phrase: Phrase) -> Verdict:
    side = "destination" if outage.region == mirror.region else "source"
    return replace(
        verdict,
        state=State.UNKNOWN,
        reason_code=f"{side}_unreachable",
        sentence=phrase,
        brief=say(f"{side} not reached"),
        since=outage.since,
    )
