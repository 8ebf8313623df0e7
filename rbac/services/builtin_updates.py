"""Built-in policies that an earlier version installed: which lack actions of this one, and bringing them up to date.

Only a policy that stands as an earlier version made it is changed. What people edited is told of, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.access.documents import Document, allow
from rbac.models import Policy
from rbac.services import administrators, builtin
from rbac.services.authorize import reading_of
from rbac.services.policies import policy_update


@dataclass(frozen=True, slots=True)
class OldPolicy:
    """A built-in policy that says nothing of some actions which it allows in a new installation; `edited` by people."""

    policy: Policy
    lacks: tuple[str, ...]
    edited: bool

    @property
    def sentence(self) -> str:
        """What is to be known of it, and done."""
        lacks = f"the built-in policy {self.name} is of an earlier version and lacks {', '.join(self.lacks)}"
        if self.edited:
            return f"{lacks}; it was edited, so it is not updated automatically: add them on its page if you want them"
        return f"{lacks}: update it on the Policies page or with manage.py update_policies"

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.policy.name)


def old_policies() -> list[OldPolicy]:
    """Built-in policies that lack actions of this version, by name; one query."""
    wanted = {document["id"]: document for document in builtin.every_one()}
    stored = Policy.objects.filter(name__in=wanted).order_by("name")
    found = [_compared(policy, wanted[policy.name]) for policy in stored]
    return [old for old in found if old.lacks]


@administrators.administrator_kept()
def update_policies(*, actor: object, names: Sequence[str]) -> list[str]:
    """Bring those of these policies up to date that nobody edited; gives their names. Conflict if it would leave nobody
    to administer access."""
    wanted = {document["id"]: document for document in builtin.every_one()}
    done = [old for old in old_policies() if old.name in names and not old.edited]
    for old in done:
        policy_update(actor=actor, policy=old.policy, statement=wanted[old.name]["statement"])
    return [old.name for old in done]


def _compared(policy: Policy, wanted: Document) -> OldPolicy:
    """What is missing: actions that no statement of the stored policy speaks of. One that is denied is not missing."""
    statements = reading_of(policy).statements
    lacks = tuple(
        action
        for statement in wanted["statement"]
        for action in statement["action"]
        if not any(stored.names(action) for stored in statements)
    )
    earlier = [[allow(actions)] for actions in builtin.EARLIER.get(policy.name, ())]
    return OldPolicy(policy, lacks, policy.statement not in earlier)
