"""The kinds of alerts: how severe each is, what it is called, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

from core.mirroring.states import State


class Severity(StrEnum):
    """How bad an alert is, from the mildest to the worst. As texts they sort the worst first."""

    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def level(self) -> int:
        """Larger is worse."""
        return list(Severity).index(self)

    @property
    def word(self) -> str:
        """As a person reads it."""
        return self.value.capitalize()


class AlertKind(StrEnum):
    """What is wrong, by the code that rules, the API and receivers of messages compare."""

    REGION_DOWN = "region-down"
    REPLICATION_STOPPED = "replication-stopped"
    QUEUE_SILENT = "queue-silent"
    QUEUE_LATE = "queue-late"
    DEPLOYMENTS_DIFFER = "deployments-differ"
    REGION_TEST_FAILED = "region-test-failed"
    KEY_EXPIRING = "key-expiring"
    KEY_EXPIRING_SOON = "key-expiring-soon"
    TLS_EXPIRING = "tls-certificate-expiring"
    TLS_EXPIRING_SOON = "tls-certificate-expiring-soon"
    AUDIT_BROKEN = "audit-broken"
    MIRROR_LATE = "mirror-late"
    MIRROR_UNKNOWN = "mirror-unknown"
    MIRROR_BLOCKED = "mirror-blocked"
    MIRROR_DAMAGED = "mirror-damaged"
    MIRROR_TAMPERED = "mirror-tampered"
    MIRROR_FAILED = "mirror-failed"
    MIRROR_FROZEN = "mirror-frozen"
    MIRROR_STOPPED = "mirror-stopped"
    MIRROR_PAUSED_TOO_LONG = "mirror-paused-too-long"
    MIRROR_GARBAGE_COLLECTION = "mirror-garbage-collection"
    HEAD_UNGATED = "head-ungated"
    DELETIONS_WAITING = "deletions-waiting"
    DELETIONS_FROZEN = "deletions-frozen"
    EXPORT_STOPPED = "export-stopped"
    EXPORT_FAILED = "export-failed"
    EXPORT_DRIFTED = "export-drifted"
    EXPORT_UNVERIFIED = "export-unverified"
    EXPORT_PAUSED_TOO_LONG = "export-paused-too-long"
    RULE_BLOCKED = "rule-blocked"
    RULE_STALE = "rule-stale"
    RULE_DOWN = "rule-down"
    RULE_FAILED = "rule-failed"
    RULE_UNKNOWN = "rule-unknown"
    RULE_NOT_COMPARED = "rule-not-compared"
    RULE_PAUSED_TOO_LONG = "rule-paused-too-long"
    RULE_DELETES_FROZEN = "rule-deletes-frozen"
    RULE_DELETES_WAITING = "rule-deletes-waiting"

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        if self in _AT_ONCE:
            return Severity.CRITICAL
        return Severity.WARNING if self in _WARNINGS else Severity.ERROR

    @property
    def at_once(self) -> bool:
        """Whether its alert opens as soon as it is seen: what is damaged doesn't mend by itself."""
        return self in _AT_ONCE

    @property
    def word(self) -> str:
        """Of an alert of this kind, as the head of a line."""
        return _WORDS.get(self, self.value.replace("-", " ").capitalize().replace("Tls", "TLS"))

    @property
    def remedy(self) -> str:
        """What to do about it, where the alert doesn't know better."""
        return _REMEDIES[self]


_WARNINGS = frozenset(
    {
        AlertKind.MIRROR_LATE,
        AlertKind.MIRROR_UNKNOWN,
        AlertKind.MIRROR_PAUSED_TOO_LONG,
        AlertKind.EXPORT_PAUSED_TOO_LONG,
        AlertKind.EXPORT_UNVERIFIED,
        AlertKind.RULE_UNKNOWN,
        AlertKind.RULE_PAUSED_TOO_LONG,
        AlertKind.RULE_DELETES_FROZEN,
        AlertKind.RULE_DELETES_WAITING,
        AlertKind.QUEUE_LATE,
        AlertKind.REGION_TEST_FAILED,
        AlertKind.KEY_EXPIRING,
        AlertKind.TLS_EXPIRING,
        AlertKind.MIRROR_GARBAGE_COLLECTION,
        AlertKind.DELETIONS_WAITING,
        AlertKind.DELETIONS_FROZEN,
    }
)
_AT_ONCE = frozenset(
    {
        AlertKind.MIRROR_DAMAGED,
        AlertKind.MIRROR_TAMPERED,
        AlertKind.EXPORT_DRIFTED,
        AlertKind.AUDIT_BROKEN,
        AlertKind.HEAD_UNGATED,
    }
)
_WORDS = {AlertKind.HEAD_UNGATED: "Moved without a hold"}
"""Where the code does not read well."""
_REMEDIES = {
    AlertKind.REGION_DOWN: "Check the region's servers and the network in between.",
    AlertKind.REPLICATION_STOPPED: "Check the bucket replication between the two regions: its rule, role and metrics.",
    AlertKind.QUEUE_SILENT: "Start the controller and the worker of this queue, and check their logs.",
    AlertKind.QUEUE_LATE: "See on Jobs what its workers are busy with, or start more of them.",
    AlertKind.DEPLOYMENTS_DIFFER: "Give all deployments on this database the same value, and restart them.",
    AlertKind.REGION_TEST_FAILED: "Open the region: fix what its last test names, then click Test.",
    AlertKind.KEY_EXPIRING: "Click Rotate beside the key, and give the new one to the programs that use it.",
    AlertKind.KEY_EXPIRING_SOON: "Click Rotate beside the key, and give the new one to the programs that use it.",
    AlertKind.TLS_EXPIRING: "Renew the certificate of that server. LakeMirror sees the new one within minutes.",
    AlertKind.TLS_EXPIRING_SOON: "Renew the certificate of that server. LakeMirror sees the new one within minutes.",
    AlertKind.AUDIT_BROKEN: "Don't change the database, and compare it with a backup.",
    AlertKind.MIRROR_LATE: "Open the mirror: its page says what it waits for.",
    AlertKind.MIRROR_UNKNOWN: "Open the mirror: its page says what can't be checked.",
    AlertKind.MIRROR_BLOCKED: "Open its backlog: it names what has not arrived, and how to copy it.",
    AlertKind.MIRROR_DAMAGED: "Open its backlog: restore what is damaged, then retry.",
    AlertKind.MIRROR_TAMPERED: "Open the mirror: find out who wrote to it, then undo the changes.",
    AlertKind.MIRROR_FAILED: "Open the mirror: its page says what failed.",
    AlertKind.MIRROR_FROZEN: "Open the mirror: its source is not the one that it was created from.",
    AlertKind.MIRROR_STOPPED: "Open the mirror: its page says what stopped it.",
    AlertKind.MIRROR_PAUSED_TOO_LONG: "Click Resume on the mirror's page, or give the pause another end there.",
    AlertKind.MIRROR_GARBAGE_COLLECTION: "Open the mirror: its page says which rules, and what to do about them.",
    AlertKind.HEAD_UNGATED: "Open Held merges: give the merged branches the action file, or find out who reset it.",
    AlertKind.DELETIONS_WAITING: "Open Sweeps: look at the list of objects, then approve or reject it.",
    AlertKind.DELETIONS_FROZEN: "Open Sweeps: it says what is in doubt. Nothing is deleted until that is settled.",
    AlertKind.EXPORT_STOPPED: "Delete the export, or export another branch instead.",
    AlertKind.EXPORT_FAILED: "Fix the cause, then click Repair on the export's page.",
    AlertKind.EXPORT_DRIFTED: "Click Repair drift on the export's page.",
    AlertKind.EXPORT_UNVERIFIED: "Open the export: fix what its last verification could not do, then click Verify.",
    AlertKind.EXPORT_PAUSED_TOO_LONG: "Click Resume on the export's page, or give the pause another end there.",
    AlertKind.RULE_BLOCKED: "Open the rule: mend what the store refuses. It goes on by itself within a minute.",
    AlertKind.RULE_STALE: "Open the rule: make sure that its target is the right place, then click Confirm.",
    AlertKind.RULE_DOWN: "Check that store and the network in between. The rule goes on by itself.",
    AlertKind.RULE_FAILED: "Open its failed objects: they are listed with the reason. Fix that, then click Retry.",
    AlertKind.RULE_UNKNOWN: "Open the rule: its page says what can't be listed.",
    AlertKind.RULE_NOT_COMPARED: "Open the rule: its page says why its places can't be compared.",
    AlertKind.RULE_PAUSED_TOO_LONG: "Click Resume on the rule's page, or give the pause another end there.",
    AlertKind.RULE_DELETES_FROZEN: "Open the rule: find out what happened to its source, then click Confirm.",
    AlertKind.RULE_DELETES_WAITING: "Open Deletes waiting: look at the list of objects, then approve or reject it.",
}

OF_MIRRORS = {
    State.LATE: AlertKind.MIRROR_LATE,
    State.UNKNOWN: AlertKind.MIRROR_UNKNOWN,
    State.UNPROVEN: AlertKind.MIRROR_UNKNOWN,
    State.BLOCKED: AlertKind.MIRROR_BLOCKED,
    State.DAMAGED: AlertKind.MIRROR_DAMAGED,
    State.TAMPERED: AlertKind.MIRROR_TAMPERED,
    State.FAILED: AlertKind.MIRROR_FAILED,
    State.FROZEN: AlertKind.MIRROR_FROZEN,
    State.STOPPED: AlertKind.MIRROR_STOPPED,
}
"""The alert of a mirror in a state; of others there is none."""
OF_EXPORTS = {
    State.STOPPED: AlertKind.EXPORT_STOPPED,
    State.FAILED: AlertKind.EXPORT_FAILED,
    State.DAMAGED: AlertKind.EXPORT_DRIFTED,
}
"""The same of exports."""
OF_LINKS = {
    State.BLOCKED: AlertKind.RULE_BLOCKED,
    State.RETRYING: AlertKind.RULE_DOWN,
    State.FAILED: AlertKind.RULE_FAILED,
    State.UNKNOWN: AlertKind.RULE_UNKNOWN,
}
"""The same of links of replication rules."""
