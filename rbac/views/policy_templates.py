"""Templates from which a policy is begun; those with blanks ask for what fills them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.access.policies import repository_arn
from core.errors import Invalid
from rbac.services import builtin

BLANKS = {
    "source": ("Source repository", "The repository that is mirrored, like lake."),
    "mirror": ("Mirror", "The repository that becomes the copy, like lake-eu."),
    "namespace": ("Storage namespace of the mirror", "Where the copy's files are: s3://bucket/prefix"),
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
        suffix = f"-{values['mirror']}" if "mirror" in values else ""
        return self.make(**values) | {"id": self.name + suffix}


def _empty() -> dict[str, Any]:
    example = {"effect": "allow", "action": ["fs:ReadRepository"], "resource": repository_arn("NAME")}
    return {"id": "", "statement": [example]}


TEMPLATES = {
    template.key: template
    for template in (
        Template(
            "replicator-for",
            "Replicator of one mirror",
            "What LakeMirror's own user needs in lakeFS for one source and one mirror, and no more.",
            "Replicator",
            builtin.replicator_for,
            ("source", "mirror", "namespace"),
        ),
        Template(
            "replicator",
            "Replicator, wide",
            "What LakeMirror's own user needs in lakeFS, for every repository.",
            "Replicator",
            builtin.replicator,
        ),
        Template(
            "mirror-admin",
            "Mirror administrator",
            "Makes, changes, lists and deletes mirrors here.",
            "MirrorAdministrators",
            builtin.mirror_admin,
        ),
        Template(
            "operate",
            "Operator",
            "Runs what others have configured: pause, sync, validate, retry, repair.",
            "RunOnly",
            builtin.operate,
        ),
        Template("read-all", "Reader", "Looks at everything, changes nothing.", "Readers", builtin.read_all),
        Template(
            "own-keys",
            "Own keys",
            "Everybody who has it makes, rotates and disables their own access keys.",
            "OwnKeys",
            builtin.own_credentials,
        ),
        Template(
            "empty",
            "An empty one",
            "One statement, to be filled in.",
            "NewPolicy",
            _empty,
        ),
    )
}
