"""The checks that the settings of a mirror ask for, whenever they were chosen: of a mirror that is there.

When it is created the preflight makes them with all others; what may be switched on later is looked at then, and when
somebody asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from core.access.policies import repository_arn
from core.installations import preflight as decide
from core.installations import preflight_hooks as hooks
from core.installations.preflight import Check, CheckOutcome
from core.installations.preflight_hooks import Hooked
from core.installations.replication_rights import LIST_TAGS, Side
from core.installations.webhook_action import HOLD_FILE
from core.listing import branch_heads
from core.text.phrases import count
from db import clock
from deployment.wiring import clients
from installations.probes import Answers, Calls, ask
from mirrors.models import Mirror
from mirrors.preflight.checks import Preflight
from mirrors.preflight.hooked_branches import hooked_branches

ASKING = ("hold", "follow_gc")
"""Columns of the settings that ask for checks."""


def standing_checks(mirror: Mirror) -> Preflight:
    """Those that its settings ask for now; none of them keeps it from working. The caller has asked for the right, and
    waits for some seconds at most."""
    answers: Answers = ask(_calls(mirror))
    checks = list(_checks(mirror, answers))
    return Preflight(checks, clock.now(), deciding={check.id for check in checks})


def verdict_of(found: Preflight) -> str:
    """What they come to, in a sentence."""
    wrong = [check for check in found.checks if check.state in (CheckOutcome.FAILED, CheckOutcome.WARNING)]
    unknown = [check for check in found.checks if check.state is CheckOutcome.UNKNOWN]
    if wrong:
        return f"{len(wrong)} of {count(len(found.checks), 'check')} found something to do."
    if unknown:
        return f"{len(unknown)} of {count(len(found.checks), 'check')} could not be made."
    return f"In order: {count(len(found.checks), 'check')} passed."


def asks_for_checks(mirror: Mirror) -> bool:
    """Whether there is anything to check."""
    return any(getattr(mirror, column) for column in ASKING)


def switched_on(before: Mirror, after: Mirror) -> bool:
    """Whether a change of its settings asks for checks: one of them was switched on, or changed."""
    return any(getattr(after, one) and getattr(after, one) != getattr(before, one) for one in ASKING)


def _calls(mirror: Mirror) -> Calls:
    calls: Calls = {}
    if mirror.hold:
        calls["hold-file"] = partial(_hooked, mirror.source.region, mirror.source.name)
    if mirror.follow_gc:
        calls |= {side: partial(_list_tags, region, name) for side, region, name in _sides(mirror)}
    return calls


def _sides(mirror: Mirror) -> Collection[tuple[Side, str, str]]:
    source = mirror.source
    return (Side.SOURCE, source.region, source.name), (Side.DESTINATION, mirror.region, mirror.name)


def _hooked(region: str, name: str) -> Hooked:
    """About a merge the branch asks that is merged, whichever it is."""
    lakefs = clients.quick_lakefs(region)
    return hooked_branches(lakefs.get_repository(name), region, branch_heads(lakefs, repository=name), HOLD_FILE)


def _list_tags(region: str, name: str) -> Any:
    return clients.quick_lakefs(region).list_tags(name, amount=1)


def _checks(mirror: Mirror, answers: Answers) -> Iterator[Check]:
    if mirror.hold:
        yield hooks.check_hold_file(mirror.source.name, answers["hold-file"])
    if mirror.follow_gc:  # what tags name is kept, whether or not they are mirrored
        for side, _, name in _sides(mirror):
            yield decide.check_right(side, LIST_TAGS, repository_arn(name), answers[side])
