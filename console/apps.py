"""Pages over all apps: overview, jobs, search, audit, metrics, the API's document. No models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from mirrors.beside import Exports


def _exports() -> Exports:
    """Imported when a page asks: a worker has no use for pages."""
    from console import exports_summary

    return exports_summary.Exports()


class ConsoleConfig(AppConfig):
    name = "console"

    def ready(self) -> None:
        """Tell the pages of mirrors what exports bring to them."""
        from mirrors import beside

        beside.register(_exports)
