"""`manage.py update_policies`: built-in policies of an earlier version get the actions of this one, unless edited."""

from __future__ import annotations

from typing import Any

from rbac.management.base import ACTOR, AccessCommand
from rbac.services.builtin_updates import old_policies, update_policies


class Command(AccessCommand):
    help = "Give built-in policies of an earlier version the actions of this one. Edited policies stay as they are."

    def run(self, **options: Any) -> None:
        old = old_policies()
        updated = update_policies(actor=ACTOR, names=[policy.name for policy in old])
        for policy in old:
            lacks = ", ".join(policy.lacks)
            if policy.name in updated:
                self.stdout.write(f"{policy.name}: updated, now also allows {lacks}")
            else:
                self.stdout.write(f"{policy.name}: not changed, because it was edited here; it lacks {lacks}")
        if not old:
            self.stdout.write("All built-in policies are up to date.")
