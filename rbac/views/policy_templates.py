"""Templates from which a policy is begun; those with blanks ask for what fills them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.access.policies import repository_arn
from core.errors import Invalid
from rbac.services import builtin

ONE_MIRROR = ("view-mirror", "operate-mirror")
"""Templates by which people get to one mirror: what its own page leads to."""
BLANKS = {
    "source": ("Source repository", "The repository that is mirrored, like lake."),
    "mirror": ("Mirror", "The name of the mirror, like lake-eu."),
    "namespace": ("Storage namespace of the mirror", "Where the mirror's files are: s3://bucket/prefix"),
}


@dataclass(frozen=True, slots=True)
class Template:
    """A policy to begin with. `make` takes the blanks by name."""

    key: str
    title: str
    description: str
    name: str
    make: Callable[..., dict[str, Any]]
    blanks: tuple[str, ...] = ()

    def fill(self, given: Mapping[str, str]) -> dict[str, Any]:
        """The policy. Raises Invalid, naming the blank that is badly filled."""
        values = {name: given.get(name, "").strip() for name in self.blanks}
        for name, value in values.items():
            if not value:
                raise Invalid(f"{BLANKS[name][0]} is missing", field=name)
        suffix = f"-{values['mirror']}" if self.blanks else ""
        return self.make(**values) | {"id": self.name + suffix}


def _empty() -> dict[str, Any]:
    example = {"effect": "allow", "action": ["fs:ReadRepository"], "resource": repository_arn("NAME")}
    return {"id": "", "statement": [example]}


TEMPLATES = {
    template.key: template
    for template in (
        Template(
            "view-mirror",
            "Viewer of one mirror",
            "For people: see one mirror, with its jobs, alerts and metrics, and no other. They make their own access "
            "keys.",
            "View",
            builtin.viewer_of,
            ("mirror",),
        ),
        Template(
            "operate-mirror",
            "Operator of one mirror",
            "For people: see one mirror and run it (pause, sync, validate, retry, repair), and acknowledge its alerts. "
            "They make their own access keys.",
            "Operate",
            builtin.operator_of,
            ("mirror",),
        ),
        Template(
            "replicator-for",
            "Replicator of one mirror",
            "For LakeMirror's own user in lakeFS, not for people: what it needs for one source and one mirror.",
            "Replicator",
            builtin.replicator_for,
            ("source", "mirror", "namespace"),
        ),
        Template(
            "replicator",
            "Replicator of all mirrors",
            "For LakeMirror's own user in lakeFS, not for people: what it needs for every repository.",
            "Replicator",
            builtin.replicator,
        ),
        Template(
            "mirror-admin",
            "Mirror administrator",
            "Creates, edits, lists and deletes mirrors.",
            "MirrorAdministrators",
            builtin.mirror_admin,
        ),
        Template(
            "rule-admin",
            "Replication rule administrator",
            "Creates, changes, runs and deletes replication rules, at any place.",
            "RuleAdministrators",
            builtin.rule_admin,
        ),
        Template(
            "operate",
            "Operator",
            "Runs every mirror and export: pause, sync, validate, retry, repair. Opens no page by itself.",
            "RunOnly",
            builtin.operate,
        ),
        Template("read-all", "Reader", "Sees everything, changes nothing.", "Readers", builtin.read_all),
        Template(
            "own-keys",
            "Own keys",
            "Its users create, rotate and disable their own access keys.",
            "OwnKeys",
            builtin.own_credentials,
        ),
        Template(
            "empty",
            "Blank policy",
            "One example statement to edit.",
            "NewPolicy",
            _empty,
        ),
    )
}
