"""The audit's chain once more, on a PostgreSQL server of its own."""

from __future__ import annotations

from pathlib import Path

from tests.postgres import passes_on_postgresql


def test_the_chain_on_postgresql() -> None:
    passes_on_postgresql(Path(__file__).parent, ["test_chain.py", "test_seal.py", "test_refusals.py"])
