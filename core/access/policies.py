"""Who may do what: policies in lakeFS's JSON form, and how lakeFS reads them.

A policy is a list of statements; each allows or denies actions on resources. An action is allowed when some statement
that covers it allows and none denies; nothing that covers it means no. The details are lakeFS's (its auth package),
so that a policy says the same in both places:

- `*` stands for any run of characters (also `/` and none), `?` for exactly one; there is no escape; case matters.
- Of a resource `arn:lakefs:service:region:account:rest` only `rest` may hold wildcards; service and account must be
  equal, region isn't looked at. A resource that is just `*` covers everything, also what is not an ARN.
- `${user}` in a resource stands for the name of the user who asks. It is taken literally: a wildcard in a name is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from core.access.json_lines import lines_of
from core.errors import Invalid

ALL = "*"
USER_VARIABLE = "${user}"
SERVICES = frozenset({"fs", "auth", "ci", "retention", "branches", "pr"})
PART_OF = {
    "fs:OperateMirror": "fs:MirrorRepository",
    "fs:PauseExport": "fs:ExportConfig",
    "fs:RunExport": "fs:CreateCommit",
    "fs:OperateReplicationRule": "fs:UpdateReplicationRule",
}
"""Actions of our own, to run what others configure. Who may the whole may its part; who is denied either may not."""
Right = tuple[str, str]
"""An action, and the ARN that it is done to."""
MOST_STATEMENTS = 200
MOST_ITEMS = 200
LONGEST_TEXT = 2048

_ARN_FIELDS = 6
_POLICY_FIELDS = frozenset({"id", "name", "statement", "creation_date"})
_WHOLE = "policy"
_STATEMENT_FIELDS = frozenset({"effect", "action", "resource"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,127}")
_ACTION = re.compile(r"[a-z]+:[A-Za-z*?]+")
_VARIABLE = re.compile(r"\$\{[^}]*\}?")
_PLACEHOLDER = re.compile(r"(?<!\$)\{(?:sourceRepositoryId|mirrorId|[dD]estinationStorageNamespace|storageNamespace)\}")


class Effect(StrEnum):
    """What a statement does to an action that it covers."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Statement:
    """One line of a policy. Not checked on its own: `parse_policy` does that."""

    effect: Effect
    actions: tuple[str, ...]
    resources: tuple[str, ...]

    def covers(self, action: str, arn: str, username: str) -> bool:
        """Whether it speaks of this action on this resource at all."""
        return self.names(action) and any(resource_match(pattern, arn, username) for pattern in self.resources)

    def names(self, action: str) -> bool:
        """Whether it speaks of this action on some resource."""
        return any(wildcard_match(pattern, action) for pattern in self.actions)


@dataclass(frozen=True, slots=True)
class Policy:
    """A named list of statements."""

    name: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Deciding:
    """The statement that settled a question; `number` counts from 1, as people do."""

    policy: str
    number: int
    statement: Statement

    def __str__(self) -> str:
        return f"{self.statement.effect} by statement {self.number} of policy '{self.policy}'"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no, and why: the first statement that denies, else the first that allows, else None."""

    allowed: bool
    deciding: Deciding | None = None

    @property
    def is_denied(self) -> bool:
        """Whether a statement says no, and not just none says yes."""
        return not self.allowed and self.deciding is not None


def evaluate(policies: Sequence[Policy], action: str, arn: str, username: str) -> Verdict:
    """May a user with these policies do `action` on `arn`? What is a part of another action comes with that one."""
    verdict = _evaluate(policies, action, arn, username)
    if action not in PART_OF or verdict.is_denied:
        return verdict
    whole = _evaluate(policies, PART_OF[action], arn, username)
    return whole if whole.is_denied or not verdict.allowed else verdict


def _evaluate(policies: Iterable[Policy], action: str, arn: str, username: str) -> Verdict:
    allowing: Deciding | None = None
    for policy in policies:
        for number, statement in enumerate(policy.statements, start=1):
            if not statement.covers(action, arn, username):
                continue
            deciding = Deciding(policy.name, number, statement)
            if statement.effect is Effect.DENY:
                return Verdict(False, deciding)
            allowing = allowing or deciding
    return Verdict(allowing is not None, allowing)


def evaluate_any(policies: Sequence[Policy], rights: Sequence[Right], username: str) -> tuple[Right, Verdict]:
    """Of rights that serve each as well, the one that settles it: the first that is denied, else the first that is
    allowed, else the first."""
    return settling([(right, evaluate(policies, *right, username)) for right in rights])


def settling(verdicts: Sequence[tuple[Right, Verdict]]) -> tuple[Right, Verdict]:
    """The same of verdicts that are there already."""
    denied = (it for it in verdicts if it[1].is_denied)
    return next(denied, None) or next((it for it in verdicts if it[1].allowed), verdicts[0])


def everywhere(policies: Iterable[Policy], action: str, resources: Sequence[str]) -> bool:
    """Whether an action is allowed on one of these resources, written in a statement as they are, and denied on none.

    A denial anywhere counts: it isn't asked what it would deny.
    """
    statements = [statement for policy in policies for statement in policy.statements if statement.names(action)]
    allowing = any(resource in statement.resources for statement in statements for resource in resources)
    return allowing and not any(statement.effect is Effect.DENY for statement in statements)


def deny_everything(name: str) -> Policy:
    """What an unreadable policy counts as: it might have denied anything."""
    return Policy(name, (Statement(Effect.DENY, (ALL,), (ALL,)),))


# --- matching ---------------------------------------------------------------------------------------------------------


def wildcard_match(pattern: str, text: str) -> bool:
    """Whether the whole text fits a pattern of `*` and `?`."""
    return _compiled(pattern).fullmatch(text) is not None


def resource_match(pattern: str, arn: str, username: str = "") -> bool:
    """Whether a statement's resource covers an ARN (or, for `*` alone, anything)."""
    if pattern == ALL:
        return True
    pattern_fields, arn_fields = _arn_fields(pattern), _arn_fields(arn)
    if pattern_fields is None or arn_fields is None or _fixed(pattern_fields) != _fixed(arn_fields):
        return False
    return _compiled(pattern_fields[5], username).fullmatch(arn_fields[5]) is not None


def is_arn(text: str) -> bool:
    """Whether a text is an ARN of lakeFS."""
    return _arn_fields(text) is not None


def may_cover_repository(pattern: str) -> bool:
    """Whether a statement's resource could cover a repository itself, and not just what is in one."""
    fields = _arn_fields(pattern)
    if pattern == ALL or fields is None or _fixed(fields) != ("fs", ""):
        return pattern == ALL
    kind, slash, name = fields[5].partition("/")
    return bool(set("*?") & set(kind)) or (kind == "repository" and bool(slash) and "/" not in name)


def _arn_fields(text: str) -> list[str] | None:
    """The six fields of an ARN, the last one with any colons it has; None if it is not an ARN of lakeFS."""
    fields = text.split(":", _ARN_FIELDS - 1)
    if len(fields) < _ARN_FIELDS or fields[:2] != ["arn", "lakefs"] or not fields[2] or not fields[5]:
        return None
    return fields


def _fixed(fields: Sequence[str]) -> tuple[str, str]:
    """Service and account: what has to be equal. lakeFS does not compare the region."""
    return fields[2], fields[4]


@lru_cache(maxsize=4096)
def _compiled(pattern: str, username: str | None = None) -> re.Pattern[str]:
    """A pattern as a regular expression that never backtracks over an earlier `*`, so that none is slow on purpose."""
    first, *rest = re.sub(r"\*{2,}", "*", pattern).split("*")
    if not rest:
        return re.compile(_literal(first, username), re.DOTALL)
    *middle, last = (_literal(piece, username) for piece in rest)
    steps = "".join(f"(?>.*?{piece})" for piece in middle)
    return re.compile(f"{_literal(first, username)}{steps}.*{last}", re.DOTALL)


def _literal(piece: str, username: str | None) -> str:
    """A piece without `*`: each `?` is any one character, `${user}` the name, the rest itself."""
    parts = piece.split(USER_VARIABLE) if username is not None else [piece]
    return re.escape(username or "").join(".".join(map(re.escape, part.split("?"))) for part in parts)


# --- reading ----------------------------------------------------------------------------------------------------------


class WrongStatement(Invalid):
    """A statement that can't be read; `number` counts from 1, as people do."""

    def __init__(self, error: Invalid, number: int) -> None:
        super().__init__(error.message, field=error.field, hint=error.hint)
        self.number = number


def parse_policy(document: object) -> Policy:
    """A policy from lakeFS's JSON form. Invalid names the statement (counted from 1) and the field that is wrong."""
    fields = _object(document, _WHOLE, _POLICY_FIELDS)
    name = fields.get("id", fields.get("name"))
    if {"id", "name"} <= fields.keys() and fields["id"] != fields["name"]:
        raise Invalid("the policy has an id and another name", field="id", hint="Give one of them")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Invalid(
            "the policy needs an id", field="id", hint="Use letters, digits and _ . @ + -, at most 128 characters"
        )
    if type(fields.get("creation_date", 0)) is not int:
        raise Invalid("creation_date must be a whole number of seconds", field="creation_date", hint="Or leave it out")
    return Policy(name, parse_statements(fields.get("statement")))


def parse_json(text: str) -> Policy:
    """A policy from JSON text. Invalid names line and column of what is no JSON, the line of a wrong statement."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise Invalid(f"line {error.lineno}, column {error.colno}: {error.msg}", field="policy") from error
    except RecursionError as error:
        raise Invalid("nested too deeply", field="policy") from error
    try:
        return parse_policy(document)
    except WrongStatement as error:
        line = lines_of(text)["statement", error.number - 1]
        raise Invalid(f"line {line}: {error.message}", field=error.field, hint=error.hint) from error


def parse_statements(value: object) -> tuple[Statement, ...]:
    """The statements of a policy; at least one."""
    items = _list(value, "statement", MOST_STATEMENTS)
    return tuple(_numbered(item, number) for number, item in enumerate(items, start=1))


def _numbered(value: object, number: int) -> Statement:
    try:
        return _statement(value, f"statement {number}")
    except Invalid as error:
        raise WrongStatement(error, number) from error


def _statement(value: object, where: str) -> Statement:
    fields = _object(value, where, _STATEMENT_FIELDS)
    for name in ("effect", "action", "resource"):
        if name not in fields:
            raise Invalid(f"{where} has no {name}", field=where)
    return Statement(
        effect=_effect(fields["effect"], f"effect of {where}"),
        actions=tuple(_action(item, f"action of {where}") for item in _list(fields["action"], f"action of {where}")),
        resources=_resources(fields["resource"], f"resource of {where}"),
    )


def _object(value: object, where: str, known: frozenset[str]) -> Mapping[str, object]:
    """A JSON object without foreign fields: one that we don't know (a condition, say) might narrow what it allows."""
    if not isinstance(value, dict):
        raise Invalid(f"{where} must be a JSON object", field=where)
    foreign = sorted(str(key) for key in value.keys() - known)
    if foreign:
        hint = f"Known are {', '.join(sorted(known))}"
        name = foreign[0][:40]
        field = name if where == _WHOLE else f"{name} of {where}"
        raise Invalid(f"{where} has an unknown field '{name}'", field=field, hint=hint)
    return value


def _list(value: object, where: str, most: int = MOST_ITEMS) -> list[object]:
    if not isinstance(value, list) or not value:
        raise Invalid(f"{where} must be a list with at least one item", field=where)
    if len(value) > most:
        raise Invalid(f"{where} has {len(value)} items, more than {most}", field=where)
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise Invalid(f"{where} must be text", field=where)
    if len(value) > LONGEST_TEXT:
        raise Invalid(f"{where} is longer than {LONGEST_TEXT} characters", field=where)
    return value


def _effect(value: object, where: str) -> Effect:
    if value not in ("allow", "deny"):
        raise Invalid(f"{where} must be 'allow' or 'deny', not {json.dumps(value, default=str)[:40]}", field=where)
    return Effect(str(value))


def _action(value: object, where: str) -> str:
    action = _text(value, where)
    service = action.partition(":")[0]
    if not _ACTION.fullmatch(action) or service not in SERVICES:
        hint = f"Write service:Action, like fs:ReadRepository or fs:*; services are {', '.join(sorted(SERVICES))}"
        raise Invalid(f"{where}: '{action[:80]}' is not an action", field=where, hint=hint)
    return action


def _resources(value: object, where: str) -> tuple[str, ...]:
    """One resource, a list of them, or (lakeFS's way of writing several) text that holds a JSON list."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (json.JSONDecodeError, RecursionError) as error:
            raise Invalid(f"{where} begins like a JSON list but is not one", field=where) from error
    items = _list(value, where) if isinstance(value, list) else [value]
    return tuple(_resource(item, where) for item in items)


def _resource(value: object, where: str) -> str:
    pattern = _text(value, where)
    shown = f"{where}: '{pattern[:120]}'"
    fields = _arn_fields(pattern)
    if pattern == ALL:
        return pattern
    if fields is None:
        raise Invalid(f"{shown} is not an ARN", field=where, hint="Use * or arn:lakefs:fs:::repository/NAME")
    if any(set("*?$") & set(field) for field in fields[:5]):
        raise Invalid(f"{shown} has a wildcard before its last field", field=where, hint="It would never match")
    _check_variables(pattern, shown, where)
    return pattern


def _check_variables(pattern: str, shown: str, where: str) -> None:
    """Refuse what would be taken literally although it was meant to be replaced."""
    placeholder = _PLACEHOLDER.search(pattern)
    if placeholder:
        raise Invalid(f"{shown} still has the placeholder {placeholder.group()}", field=where, hint="Fill it in")
    foreign = [variable for variable in _VARIABLE.findall(pattern) if variable != USER_VARIABLE]
    if foreign:
        raise Invalid(f"{shown} has the unknown variable {foreign[0]}", field=where, hint="Only ${user} is known")


# --- ARNs -------------------------------------------------------------------------------------------------------------


def repository_arn(repository: str) -> str:
    """A repository as a resource of `fs:*` actions."""
    return f"arn:lakefs:fs:::repository/{repository}"


def branch_arn(repository: str, branch: str) -> str:
    """A branch (or any ref) of a repository."""
    return f"{repository_arn(repository)}/branch/{branch}"


def object_arn(repository: str, path: str) -> str:
    """An object of a repository, by its path."""
    return f"{repository_arn(repository)}/object/{path}"


def namespace_arn(namespace: str) -> str:
    """A storage namespace; the slashes at its end don't count."""
    return f"arn:lakefs:fs:::namespace/{namespace.rstrip('/')}"


def maintenance_arn(number: int | str) -> str:
    """A maintenance window, by its number, as a resource of `fs:*` actions."""
    return f"arn:lakefs:fs:::maintenance/{number}"


def alert_arn(number: int | str) -> str:
    """An alert, by its number, as a resource of `fs:*` actions."""
    return f"arn:lakefs:fs:::alert/{number}"


def auth_arn(kind: str, name: str) -> str:
    """A user, group or policy as a resource of `auth:*` actions."""
    return f"arn:lakefs:auth:::{kind}/{name}"
