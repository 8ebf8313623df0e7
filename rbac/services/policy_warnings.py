"""What a policy may not do as it was meant: told before it is saved, and nothing that would be refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.access.actions import OF_LAKEFS, pointless_resources, unknown_actions
from core.access.policies import PART_OF, Policy
from core.access.policy_analysis import Need, PermissionStep, judge, places_named
from rbac import permission_catalog


@dataclass(frozen=True, slots=True)
class ActionHelp:
    """An action: on what it is asked for, and the steps that need it here; `lakefs`: lakeFS asks for it too."""

    name: str
    resources: tuple[str, ...]
    steps: tuple[str, ...]
    lakefs: bool

    @property
    def whole(self) -> str:
        """The action that it is a part of, or ""."""
        return PART_OF.get(self.name, "")


def actions() -> list[ActionHelp]:
    """Every action that LakeMirror asks for, by name."""
    resources, steps = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for step, need in _needs():
        resources[need.action].append(need.resource.replace("{", "<").replace("}", ">"))
        steps[need.action].append(step.title)
    return [
        ActionHelp(name, tuple(dict.fromkeys(resources[name])), tuple(dict.fromkeys(steps[name])), name in OF_LAKEFS)
        for name in sorted(resources)
    ]


def warnings_of(policy: Policy) -> list[str]:
    """What its author should know, as sentences: unknown actions, resources that are never asked for, and rights that
    open no page by themselves."""
    asked = _asked()
    return [*unknown_actions(policy, asked), *pointless_resources(policy, asked), *_opens_no_page(policy)]


def _needs() -> Iterator[tuple[PermissionStep, Need]]:
    return ((step, need) for area in permission_catalog.areas() for step in area.steps for need in step.rights)


def _asked() -> Mapping[str, Sequence[str]]:
    """On what each action is asked for; what is a part of another one, also on what that is asked for on."""
    found = defaultdict[str, list[str]](list)
    for _, need in _needs():
        for action in (need.action, PART_OF.get(need.action, "")):
            if action:
                found[action].append(need.resource)
    return found


def _opens_no_page(policy: Policy) -> Iterator[str]:
    """For each page that a policy does not open, although it lets do what stands there."""
    steps = {step.key: step for area in permission_catalog.areas() for step in area.steps}
    done: dict[str, list[str]] = defaultdict(list)
    for step in steps.values():
        if (page := _page_of(step.key)) in steps and page != step.key and _lets(policy, step):
            done[page].append(step.title)
    for page, titles in done.items():
        if not _lets(policy, steps[page]):
            need = steps[page].needs[0].each[-1]
            resource = need.resource.replace("{", "<").replace("}", ">")
            yield (
                f"This policy alone opens no page for “{titles[0]}”: add {need.action} on {resource}, unless its users "
                "have that right from another policy."
            )


def _page_of(step: str) -> str:
    """The key of the step that is to see the page on which another one is taken."""
    area, _, rest = step.partition(".")
    if area != "access":
        return f"{area}.see"
    if rest in ("users", "groups", "policies", "keys"):
        return step
    kind = rest.partition("-")[0]
    return "access." + {"key": "keys", "members": "group"}.get(kind, kind)


def _lets(policy: Policy, step: PermissionStep) -> bool:
    """Whether it allows a step at a place that its resources name, or at any."""
    return any(judge(step, place, [policy], "").allowed for place in places_named(step, [policy]))
