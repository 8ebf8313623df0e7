"""Tests of several folders once more, on a PostgreSQL server of their own: where locks and types are the subject."""

from __future__ import annotations

from tests.postgres import passes_on_postgresql

MODULES = (
    "audit/test_chain.py",
    "audit/test_refusals.py",
    "audit/test_seal.py",
    "exports/test_configuration.py",
    "exports/test_deciding.py",
    "exports/test_runs.py",
    "exports/test_soak.py",
    "exports/test_whose_place.py",
    "installations/test_meeting.py",
    "jobs/test_duties.py",
    "mirroring/test_loops.py",
    "mirroring/test_promise_database.py",
    "mirroring/test_sensor.py",
    "mirroring/test_sweeps.py",
    "mirroring/test_sweeps_after_rebuild.py",
    "mirrors/services/test_rebuild.py",
    "mirrors/status/test_readings.py",
    "mirrors/transitions/test_many_blockers.py",
    "mirrors/transitions/test_measuring.py",
    "notifications/test_delivery.py",
    "notifications/test_rules.py",
    "rbac/test_idempotency.py",
    "rbac/test_last_administrator.py",
    "replication/test_api.py",
    "replication/test_broken.py",
    "replication/test_foreign.py",
    "replication/test_large.py",
    "replication/test_ledger.py",
    "replication/test_new_objects.py",
    "replication/test_open_pages.py",
    "replication/test_restored_books.py",
    "replication/test_soak.py",
    "replication/test_whole.py",
    "replication/test_workers.py",
    "test_moved_tables.py",
    "test_upgrade.py",
)


def test_all_of_these_pass_on_postgresql() -> None:
    passes_on_postgresql(MODULES, LAKEMIRROR_EXPORT_SEEDS="1", LAKEMIRROR_RULE_SEEDS="2")
