"""What works on a link's objects (spark_jobs/replicate/), built from the link's row and the configuration."""

from __future__ import annotations

import uuid
from typing import Any

from adapters.places.reader import PlaceReader
from db import clock
from deployment.wiring import replication_jobs
from replication.engine.upstream import ways_to
from replication.models import Link
from spark_jobs.replicate.both_ways import Origins
from spark_jobs.replicate.building import HowCopied, Signs
from spark_jobs.replicate.chains import Terms
from spark_jobs.replicate.pins import PIN, Pin, PinTold


def origins_of(link: Link) -> Origins:
    """What tells where objects come from, of a link whose rule lets the newer object stay."""
    return Origins(link.rule.region, link.region, replication_jobs.stamp_key(), clock.now)


def terms_of(link: Link) -> Terms:
    """How chains are compared for a link, where copies are noted and made."""
    return how_copied(link).chains


def how_copied(link: Link) -> HowCopied:
    """How a link copies."""
    rule = link.rule
    return HowCopied(
        rule.region,
        link.region,
        rule.created_at,
        existing=rule.existing,
        new=rule.new,
        terms=rule.terms,
        newest=rule.both_ways,
        sure=rule.markers,
        all_versions=rule.all_versions,
        exact=bool(link.exact),
        purges=rule.purges,
        ways=ways_to(rule, link),
    )


def signs() -> Signs:
    """What signs proofs of parts, and where copies came from."""
    return Signs(replication_jobs.proof_key(), replication_jobs.stamp_key())


def pin_name(link: Link) -> str:
    """The name of a link's pin. Several links of rules that lead both ways may share a target: each has its own."""
    return f"target-{link.identity}.json" if link.rule.both_ways else PIN


def pin_of(link: Link, target: PlaceReader, place: Any = None) -> Pin:
    """The pin of a link that has an identity. `place`: where it lies, unless it is asked for as always."""
    return Pin(told_of(link), target, place or replication_jobs.pin_place_of(link.region, link.uri))


def told_of(link: Link) -> PinTold:
    """What the pin of a link says."""
    name, mark = f"{link.rule.name}, link {link.number}", replication_jobs.pin_mark()
    return PinTold(link.identity, name, mark, pin_name(link), link.pinned_at is not None)


def identify(link: Link) -> None:
    """A link of a version before pins gets its name in stores."""
    if not link.identity:
        Link.objects.filter(pk=link.pk, identity="").update(identity=uuid.uuid4().hex)
        link.identity = Link.objects.values_list("identity", flat=True).get(pk=link.pk)
