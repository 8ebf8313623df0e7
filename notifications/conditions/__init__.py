"""What is wrong at this moment, and how each subject is doing that an alert may be about.

Mirrors, exports and replication rules are read as their pages read them. What an outage or a silent queue explains is
given its `cause`.
"""

from __future__ import annotations

from datetime import datetime

from exports.models import Export
from exports.status.export import export_statuses
from jobs.queue_status import queue_readings
from mirrors.models import Mirror
from mirrors.status.fleet import fleet_statuses
from mirrors.status.root_causes import root_causes
from notifications.conditions.checks import look_at_audit, look_at_gc_rules, look_at_tests
from notifications.conditions.exports import look_at_exports, look_at_verifications
from notifications.conditions.held import look_at_held
from notifications.conditions.keys import look_at_keys
from notifications.conditions.mirrors import look_at_mirrors
from notifications.conditions.observation import Observation, Trouble, by_key
from notifications.conditions.pauses import look_at_pauses
from notifications.conditions.regions import (
    look_at_deployments,
    look_at_queues,
    look_at_regions,
    look_at_replication,
)
from notifications.conditions.rules import look_at_rules
from notifications.conditions.server_certificates import look_at_certificates
from notifications.conditions.sweeps import look_at_sweeps
from replication.models import Rule
from replication.status.rules import rule_readings

__all__ = ["Observation", "Trouble", "by_key", "observe"]


def observe(now: datetime) -> Observation:
    """Look at all that an alert may be about; raises what a database may raise."""
    seen = Observation()
    readings = fleet_statuses(Mirror.objects.live(), now)
    causes, queues = root_causes(readings, now), queue_readings(now)
    look_at_regions(seen, causes, now)
    look_at_replication(seen, readings)
    look_at_queues(seen, queues)
    look_at_deployments(seen)
    look_at_mirrors(seen, readings, causes, {queue.name for queue in queues if queue.silent})
    look_at_held(seen, readings, now)
    look_at_sweeps(seen, readings)
    exports = export_statuses(list(Export.objects.filter(deleting=False)), now)
    look_at_exports(seen, exports)
    look_at_verifications(seen, exports, now)
    look_at_pauses(seen, readings, exports, now)
    rules = rule_readings(list(Rule.objects.live().order_by("pk")), now)
    look_at_rules(seen, rules, {queue.name for queue in queues if queue.silent}, now)
    look_at_keys(seen, now)
    look_at_certificates(seen, now)
    look_at_audit(seen)
    look_at_gc_rules(seen, readings)
    look_at_tests(seen, now)
    return seen
