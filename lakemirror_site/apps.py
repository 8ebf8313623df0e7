"""The site as an app: its management commands, and what must happen in every process."""

from __future__ import annotations

import ctypes
import signal
from typing import Any

from django.apps import AppConfig

_PR_SET_PDEATHSIG = 1


def die_with_parent(**_: Any) -> None:
    """Ask the kernel to end this process when its parent dies, so that no queue worker outlives its cluster."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class SiteConfig(AppConfig):
    name = "lakemirror_site"

    def ready(self) -> None:
        from django_q import cluster
        from django_q.signals import post_spawn

        from jobs import housekeeping
        from jobs.queue_process import LockFreeEvent, PatientQueue
        from rbac import idempotency
        from rbac.signin import brute_force, session_store

        cluster.Queue, cluster.Event = PatientQueue, LockFreeEvent
        for old in (idempotency, session_store, brute_force):
            housekeeping.register(old.prune)
        post_spawn.connect(die_with_parent, dispatch_uid="lakemirror.die_with_parent")
