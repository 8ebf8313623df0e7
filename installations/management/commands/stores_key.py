"""Print what executors need to open the stores' keys that come with a job."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from core.store_access import EXECUTORS_KEY
from deployment.wiring import executors


class Command(BaseCommand):
    help = f"Print {EXECUTORS_KEY}, for the environment of your own Spark's executors. It is a secret."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{EXECUTORS_KEY}={executors.executors_key()}")
