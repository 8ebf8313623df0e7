"""The tests of exports once more, on a PostgreSQL server of their own."""

from __future__ import annotations

from pathlib import Path

from tests.postgres import passes_on_postgresql

MODULES = ("test_configuration.py", "test_deciding.py", "test_runs.py", "test_soak.py", "test_whose_place.py")


def test_exports_on_postgresql() -> None:
    passes_on_postgresql(Path(__file__).parent, MODULES, LAKEMIRROR_EXPORT_SEEDS="1")
