"""What somebody may do, and why: effective permissions, a question tried out, and who could grant what is refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from core.access.policies import Deciding, Effect, Statement, Verdict, evaluate
from core.access.policies import Policy as Reading
from core.access.policy_analysis import check_question, covering
from rbac import services
from rbac.models import Attachment, Membership, Policy, User

GRANTORS = 10
"""So many administrators are named to who was refused."""
_LOOKED_AT = 200
_ATTACH = "auth:AttachPolicy"


@dataclass(frozen=True, slots=True)
class Holding:
    """A statement that applies to somebody. `groups` are those that give it; `own`: it also hangs on their name."""

    policy: str
    number: int
    statement: Statement
    own: bool
    groups: tuple[str, ...]

    @property
    def through(self) -> str:
        """How it reaches them, in words."""
        ways = (["attached directly"] if self.own else []) + [f"through {group}" for group in self.groups]
        return " and ".join(ways)


@dataclass(frozen=True, slots=True)
class Simulation:
    """The answer to a question: yes or no, the statement that decides, and the others that speak of it."""

    user: User
    action: str
    arn: str
    verdict: Verdict
    deciding: Holding | None
    others: tuple[Holding, ...]

    @property
    def reason(self) -> str:
        """Why, as a sentence."""
        if not self.user.is_active:
            return f"{self.user.username} is disabled and has no permissions until enabled."
        if self.deciding is None:
            return f"No policy statement of {self.user.username} allows it, so it is refused."
        verb = "allows" if self.verdict.allowed else "denies"
        sentence = (
            f"Statement {self.deciding.number} of policy '{self.deciding.policy}', {self.deciding.through}, {verb} it"
        )
        overruled = not self.verdict.allowed and any(
            holding.statement.effect is Effect.ALLOW for holding in self.others
        )
        return f"{sentence}. A deny overrides every allow." if overruled else f"{sentence}."


def effective(user: User) -> list[Holding]:
    """Every statement that applies to a user, in the order in which they are read; one query."""
    ways: dict[str, list[Attachment]] = defaultdict(list)
    for attachment in Attachment.objects.reaching(user):
        ways[attachment.policy.name].append(attachment)
    return [
        Holding(
            name,
            number,
            statement,
            any(attachment.group is None for attachment in attachments),
            tuple(sorted(attachment.group.name for attachment in attachments if attachment.group)),
        )
        for name, attachments in ways.items()
        for number, statement in enumerate(services.reading_of(attachments[0].policy).statements, start=1)
    ]


def simulate(user: User, action: str, arn: str) -> Simulation:
    """What a user would be told if they tried. Raises Invalid, naming the field, for what is no question."""
    check_question(action, arn)
    return explain(user, action, arn)


def explain(user: User, action: str, arn: str) -> Simulation:
    """The same for what our own code asked."""
    held = {(holding.policy, holding.number): holding for holding in effective(user)} if user.is_active else {}
    verdict = services.decide(user, action, arn)
    speaking = covering(services.policies_of(user), action, arn, user.username) if user.is_active else []
    first = verdict.deciding
    others = (
        held.get(_place(candidate)) for candidate in speaking if first is None or _place(candidate) != _place(first)
    )
    deciding = held.get(_place(first)) if first else None
    return Simulation(user, action, arn, verdict, deciding, tuple(filter(None, others)))


def _place(deciding: Deciding) -> tuple[str, int]:
    return deciding.policy, deciding.number


# --- who could grant it -----------------------------------------------------------------------------------------------


def who_can_grant(user: User) -> list[str]:
    """Users whose policies let them attach policies to a user, by name; the first few. Three queries."""
    held = policies_of_all(_who_may_attach_something())
    may = (
        candidate.username
        for candidate, read in held.items()
        if evaluate(read, _ATTACH, user.arn, candidate.username).allowed
    )
    return sorted(may)[:GRANTORS]


def _who_may_attach_something() -> Iterable[User]:
    """Users who have a policy that allows it somewhere."""
    policies = [policy for policy in Policy.objects.all() if _allows_attaching(services.reading_of(policy))]
    reached = Q(attachments__policy__in=policies) | Q(memberships__group__attachments__policy__in=policies)
    return User.objects.filter(reached, is_active=True).distinct().order_by("username")[:_LOOKED_AT]


def _allows_attaching(policy: Reading) -> bool:
    return any(statement.effect is Effect.ALLOW and statement.names(_ATTACH) for statement in policy.statements)


def policies_of_all(users: Iterable[User]) -> dict[User, tuple[Reading, ...]]:
    """The policies that reach each of several users, by name; two queries, whatever their number."""
    users = list(users)
    reached = defaultdict(list, {(user.pk, None): [user.pk] for user in users})
    for user_id, group_id in Membership.objects.filter(user__in=users).values_list("user_id", "group_id"):
        reached[None, group_id].append(user_id)
    held: dict[int, set[str]] = defaultdict(set)
    read: dict[str, Reading] = {}
    hanging = Q(user__in=users) | Q(group__in=[group_id for _, group_id in reached if group_id])
    for attachment in Attachment.objects.filter(hanging).select_related("policy"):
        name = attachment.policy.name
        if name not in read:
            read[name] = services.reading_of(attachment.policy)
        for user_id in reached[attachment.user_id, attachment.group_id]:
            held[user_id].add(name)
    return {user: tuple(read[name] for name in sorted(held[user.pk])) for user in users}
