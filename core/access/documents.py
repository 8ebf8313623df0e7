"""Policies as documents in lakeFS's JSON form, made from actions and what they are allowed on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from core.access.policies import repository_arn

Document = dict[str, Any]


def policy_document(name: str, *statements: Document) -> Document:
    """A policy of these statements."""
    return {"id": name, "statement": list(statements)}


def allow(actions: Sequence[str], *resources: str) -> Document:
    """A statement in lakeFS's form: several resources are text that holds a JSON list; none means all."""
    resource = json.dumps(resources) if len(resources) > 1 else "".join(resources) or "*"
    return {"action": list(actions), "effect": "allow", "resource": resource}


def whole(repository: str) -> tuple[str, str]:
    """A repository itself and everything in it: servers ask for rights on `repository/{id}/branch/{ref}`, too."""
    return repository_arn(repository), repository_arn(f"{repository}/*")
