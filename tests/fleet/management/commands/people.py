"""`manage.py people`: merges that lakeFS asks about are held by this deployment; sweeps wanted, and approved or not."""

from __future__ import annotations

import os
import random
import threading
import time
import traceback
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connections

from core.errors import LakeMirrorError
from deployment import config
from mirrors.models import Mirror, Sweep
from mirrors.services.holds.hold import Question, merge_hold
from mirrors.services.sweeps.approval import sweep_approve, sweep_reject
from mirrors.services.sweeps.asking import sweep_now
from rbac.management.commands.ensure_admin import administrators
from tests.fleet import WORLD
from tests.fleet.merges import HOOK_SECONDS
from tests.fleet.wire import Remote

THREADS = 2
REJECTED, WANTED_NOW = 0.2, 0.05
"""Of deletions that wait for approval; of looks that might be taken at once."""
PAUSE = 0.5


class Command(BaseCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        world, region = Remote(os.environ[WORLD], "world"), config.current().region
        for _ in range(THREADS):
            threading.Thread(target=_for_ever, args=(world, lambda: _hold(world, region)), daemon=True).start()
        _for_ever(world, lambda: _decide(region))


def _for_ever(world: Any, work: Any) -> None:
    while True:
        try:
            work()
        except LakeMirrorError:
            pass  # somebody tries again
        except Exception:
            world.tell(f"who asks and decides met {traceback.format_exc()}")
        connections.close_all()
        time.sleep(PAUSE)


def _hold(world: Any, region: str) -> None:
    """As the hook's address does: whoever gets no answer may not go on."""
    asked = world.next_merge(region)
    if asked is None:
        return
    question = Question(
        region, asked["repository"], asked["branch"], asked["commit"], asked["merge_source"], 1, HOOK_SECONDS
    )
    goes_on, complete_in = False, list[str]()
    try:
        answer = merge_hold(question)
        goes_on, complete_in = answer.goes_on, list(answer.complete_in)
    finally:
        world.answer_merge(asked["repository"], asked["commit"], goes_on, complete_in if goes_on else [])


def _decide(region: str) -> None:
    for sweep in Sweep.objects.filter(state=Sweep.State.WAITING, mirror__region=region).select_related("mirror"):
        decide = sweep_reject if random.random() < REJECTED else sweep_approve
        with suppress(LakeMirrorError):
            decide(actor=administrators().get(), mirror=sweep.mirror, number=sweep.pk)
    for mirror in Mirror.objects.filter(region=region, follow_gc=True):
        if random.random() < WANTED_NOW:
            with suppress(LakeMirrorError):
                sweep_now(actor=administrators().get(), mirror=mirror)
