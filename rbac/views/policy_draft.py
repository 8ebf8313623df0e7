"""A draft of a policy as it is typed, in a form or as JSON: read, compared with what is saved, judged.

What is saved is what was looked at: a seal holds the draft and what it would replace.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from core.access.policies import Policy as Reading
from core.access.policies import parse_policy
from core.access.policy_text import Wrong, differences, pretty, read
from core.errors import Invalid
from rbac.models import Policy
from rbac.services.policy_impact import Impact, impact
from rbac.services.policy_warnings import warnings_of
from web.parsing import require_text

MOST_TEXT = 500_000
_MOST_STATEMENTS = 200


@dataclass(frozen=True, slots=True)
class Row:
    """A statement as it stands in the form: actions and resources one a line."""

    effect: str
    actions: str
    resources: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What was typed: the JSON text, and the same as the rows of a form if it can be shown so."""

    as_json: bool
    name: str
    text: str
    rows: tuple[Row, ...]

    @property
    def checked(self) -> Reading | Wrong:
        """The policy, or what is wrong with it and where."""
        if len(self.text) > MOST_TEXT:
            return Wrong(f"A policy has at most {MOST_TEXT:,} characters", 0, "")
        result = read(self.text)
        try:
            require_text(self.document if isinstance(result, Reading) else None)
        except Invalid as error:
            return Wrong(str(error), 0, "")
        return result

    @property
    def document(self) -> dict[str, Any]:
        """The policy as lakeFS writes it. Of a draft that was read."""
        body: dict[str, Any] = json.loads(self.text)
        return {"id": body.get("id", body.get("name")), "statement": body["statement"]}


def of_document(document: Mapping[str, Any], *, as_json: bool) -> Draft:
    """A draft to begin with."""
    rows = tuple(
        Row(statement.effect.value, "\n".join(statement.actions), "\n".join(statement.resources))
        for statement in parse_policy(dict(document) | {"id": document["id"] or "draft"}).statements
    )
    return Draft(as_json, document["id"], pretty(document), rows)


def of_typed(given: QueryDict) -> Draft:
    """What was sent, by the form or as JSON."""
    if given.get("mode") == "json":
        return Draft(True, "", given.get("text", ""), ())
    name = given.get("name", "").strip()
    rows = tuple(_rows(given))
    return Draft(False, name, pretty({"id": name, "statement": [_statement(row) for row in rows]}), rows)


def _rows(given: QueryDict) -> Iterable[Row]:
    """Statements of the form; those with neither actions nor resources were left empty, or emptied to be removed."""
    typed = (given.getlist(name)[:_MOST_STATEMENTS] for name in ("effect", "actions", "resources"))
    return (Row(*row) for row in zip(*typed, strict=False) if row[1].strip() or row[2].strip())


def _statement(row: Row) -> dict[str, Any]:
    """In lakeFS's form: several resources are text that holds a JSON list."""
    resources = row.resources.split()
    resource = resources[0] if len(resources) == 1 else json.dumps(resources) if resources else ""
    return {"effect": row.effect, "action": row.actions.split(), "resource": resource}


@dataclass(frozen=True, slots=True)
class Review:
    """What saving a draft would do. `seal` names the draft and what it would replace: only that may be saved."""

    reading: Reading
    warnings: list[str]
    lines: list[tuple[str, str]]
    impact: Impact
    seal: str
    is_new: bool


def review(draft: Draft, reading: Reading) -> Review:
    """Compare a draft with what is saved under its name, and judge what it changes."""
    saved = Policy.objects.filter(name=reading.name).first()
    before = pretty(saved.document) if saved else ""
    return Review(
        reading,
        warnings_of(reading),
        differences(before, pretty(draft.document)),
        impact(reading.name, reading),
        seal_of(draft, saved),
        saved is None,
    )


def seal_of(draft: Draft, saved: Policy | None) -> str:
    """A digest of a draft and of what it would replace."""
    both = [draft.document, saved.document if saved else None]
    return hashlib.sha256(json.dumps(both, sort_keys=True).encode()).hexdigest()
