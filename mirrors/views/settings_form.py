"""The settings of a mirror as a form, and what somebody else changed while it was open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms

from core import labels
from core.bringing import (
    LEAST_BYTES_PER_SECOND,
    MOST_BYTES_PER_SECOND,
    MOST_OBJECTS_PER_SECOND,
    MOST_WORKERS,
    ObjectReplication,
)
from core.errors import Invalid, LakeMirrorError
from core.holding import parse_policies, policies_of, policy_of_line
from core.mirroring.branch_selection import ALL, OnUnselect, Selection, check_priority
from core.mirroring.object_check import Depth, Imported
from core.mirroring.promotion import Repair
from core.mirroring.rpo import LATE_AFTER, LONGEST_RPO, in_words
from core.mirroring.source_moves import FirstSync
from core.sweeping import MOST_MOST
from mirrors.models import Mirror
from mirrors.services.settings_etag import etag_of
from web.forms import ServiceForm, lines, shown, values_seen

DEPTHS = [
    (Depth.PRESENCE.value, "Presence"),
    (Depth.SIZE.value, "Presence and size"),
    (Depth.ETAG.value, "Presence, size and ETag"),
    (Depth.CONTENT.value, "Presence, size, ETag and content (objects are read)"),
]
REPLICATIONS = [
    (ObjectReplication.NATIVE.value, "Native: the stores copy objects, by a bucket replication rule"),
    (ObjectReplication.MANAGED.value, "Managed: LakeMirror copies objects, between any two S3 stores"),
]


class SettingsForm(ServiceForm):
    """What may be changed of a mirror, in the words of the API. `seen` and `was` are what the form was made from."""

    include = forms.CharField(
        label="Branches to mirror",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One name or glob per line, like release-*; * also matches /. The default branch is always mirrored.",
    )
    exclude = forms.CharField(
        label="Branches to leave out",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One name or glob per line, like tmp-*.",
    )
    on_unselect = forms.ChoiceField(
        label="Branches no longer selected",
        required=False,
        choices=[
            ("", "Choose…"),
            (OnUnselect.KEEP.value, "Keep them at the mirror as they are"),
            (OnUnselect.DELETE.value, "Delete them at the mirror"),
        ],
    )
    tags = forms.BooleanField(label="Mirror tags too", required=False)
    depth = forms.ChoiceField(
        label="Validate objects by",
        choices=DEPTHS,
        help_text="With a deeper one, no branch moves until everything has been validated again that deep.",
    )
    content_sample = forms.FloatField(
        label="Share of objects to read",
        help_text="Above 0, up to 1. Used when content is validated; a larger share then validates everything again.",
    )
    object_replication = forms.ChoiceField(
        label="Object replication",
        choices=REPLICATIONS,
        required=False,
        help_text="Can be changed at any time. Nothing is copied twice.",
    )
    copying_paused = forms.BooleanField(label="Copying paused: objects are not copied", required=False)
    copy_workers = forms.IntegerField(
        label="Objects to copy at once",
        required=False,
        min_value=1,
        max_value=MOST_WORKERS,
        help_text="With managed replication.",
    )
    copy_bytes_per_second = forms.IntegerField(
        label="Copy limit, in bytes per second",
        required=False,
        min_value=LEAST_BYTES_PER_SECOND,
        max_value=MOST_BYTES_PER_SECOND,
        help_text="With managed replication. Empty: no limit.",
    )
    copy_objects_per_second = forms.IntegerField(
        label="Copy limit, in objects per second",
        required=False,
        min_value=1,
        max_value=MOST_OBJECTS_PER_SECOND,
        help_text="With managed replication. Empty: no limit.",
    )
    branch_priority = forms.CharField(
        label="Branches to copy first",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="With managed replication. One name or glob a line, most wanted first, after the default branch.",
    )
    follow_gc = forms.BooleanField(
        label="Follow the source's garbage collection",
        required=False,
        help_text="With managed replication. What it deleted at the source, and nothing here needs, is deleted here a "
        "week later.",
    )
    delete_percent = forms.IntegerField(
        label="Delete at once at most, in percent of all objects",
        required=False,
        min_value=0,
        max_value=100,
        help_text="More is deleted only after somebody has approved it.",
    )
    delete_most = forms.IntegerField(
        label="Delete at once at most, in objects",
        required=False,
        min_value=0,
        max_value=MOST_MOST,
        help_text="More is deleted only after somebody has approved it.",
    )
    imported = forms.ChoiceField(
        label="Imported objects",
        choices=[
            (Imported.BLOCK.value, "Block: a commit that names them is not mirrored"),
            (Imported.ALLOW.value, "Check them where they are"),
        ],
    )
    repair_tampering = forms.ChoiceField(
        label="Drift (uncommitted changes at the mirror)",
        choices=[(Repair.REPORT.value, "Report"), (Repair.AUTO.value, "Revert at once")],
    )
    first_sync = forms.ChoiceField(
        label="First copy",
        choices=[
            (FirstSync.EXACT.value, "Hide until the first full copy"),
            (FirstSync.INFERRED.value, "Show older commits until the first full copy"),
        ],
    )
    hold = forms.CharField(
        label="Held merges",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One policy a line: a branch or glob, then copies=1 seconds=45 late=refuse as far as wanted. Merges "
        "into these branches wait until so many regions have them.",
    )
    rpo_seconds = forms.IntegerField(
        label="Lag target, in seconds",
        required=False,
        min_value=1,
        max_value=LONGEST_RPO,
        help_text=f"A branch that is further behind is late. Empty: {in_words(LATE_AFTER.total_seconds())}.",
    )
    labels = forms.CharField(
        label="Labels",
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="One per line, like team=sales: to find mirrors by, and for the rules of channels.",
    )
    paused = forms.BooleanField(label="Paused: branches are not moved", required=False)
    seen = forms.CharField(required=False, widget=forms.HiddenInput)
    was = forms.CharField(required=False, widget=forms.HiddenInput)

    @classmethod
    def of(cls, mirror: Mirror, typed: Mapping[str, Any] | None = None) -> SettingsForm:
        """The settings as they are; `typed` stands in their place, with which others those are to be compared."""
        values = values_of(mirror)
        return cls(initial={**values, **(typed or {}), "seen": etag_of(mirror), "was": json.dumps(values)})

    @property
    def settings(self) -> list[forms.BoundField]:
        """The fields that people see, without the question that is only asked when it matters."""
        asks_on_unselect = bool(self["on_unselect"].errors or self["on_unselect"].value())
        hidden = {"seen", "was"} | (set() if asks_on_unselect else {"on_unselect"})
        return [field for field in self if field.name not in hidden]

    def clean_hold(self) -> list[dict[str, Any]]:
        """As it is stored."""
        try:
            return parse_policies([policy_of_line(line) for line in lines(self.cleaned_data["hold"])])
        except Invalid as error:
            raise forms.ValidationError(error.message) from error

    def clean_content_sample(self) -> float:
        """As the API takes it."""
        share: float = self.cleaned_data["content_sample"]
        if not 0 < share <= 1:
            raise forms.ValidationError("must be a number from above 0 to 1: the share of objects to read")
        return share

    def clean_branch_priority(self) -> str:
        """As the API takes it."""
        typed: str = self.cleaned_data["branch_priority"]
        try:
            check_priority(lines(typed))
        except Invalid as error:
            raise forms.ValidationError(str(error)) from error
        return typed

    def clean_labels(self) -> dict[str, str]:
        """As the API takes them."""
        try:
            return labels.parse(lines(self.cleaned_data["labels"]))
        except Invalid as error:
            raise forms.ValidationError(str(error)) from error

    @property
    def changes(self) -> dict[str, Any]:
        """What was typed, by the column that it is for."""
        given = {name: self.cleaned_data[name] for name in values_of(Mirror()) if name not in ("include", "exclude")}
        if "hold" not in self.data:  # of a form that did not have it yet
            del given["hold"]
        if "delete_percent" not in self.data:  # likewise
            del given["follow_gc"]
        for name in ("object_replication", "copy_workers", "delete_percent", "delete_most"):
            if given[name] in (None, ""):  # of a form that did not have them yet
                del given[name]
        return given | {"selected": self.selected, "branch_priority": lines(given["branch_priority"])}

    @property
    def selected(self) -> dict[str, list[str]]:
        """The globs that were typed."""
        include, exclude = (lines(self.cleaned_data[name]) for name in ("include", "exclude"))
        return {"include": include or list(ALL), "exclude": exclude}

    def falling_out(self, mirror: Mirror) -> list[str]:
        """Branches that are at the mirror, and are followed now, but would not be any more."""
        chosen = self.selected
        new = Selection(mirror.source.default_branch, tuple(chosen["include"]), tuple(chosen["exclude"]))
        names = mirror.branches.filter(stray=False).order_by("name").values_list("name", flat=True)
        return [name for name in names.iterator() if name in mirror.selection and name not in new]

    def over(self, mirror: Mirror) -> tuple[SettingsForm, list[tuple[str, str, str]]]:
        """A form of the settings as they are now with what was typed over them, and what others changed: label, old,
        new."""
        was, now = values_seen(self.data.get("was", "")), values_of(mirror)
        typed = {name: self[name].value() for name in now}
        mine = {name: value for name, value in typed.items() if not _same(value, was.get(name))}
        if self.data.get("on_unselect"):
            mine["on_unselect"] = self.data["on_unselect"]
        changed = [name for name in now if name in was and not _same(was[name], now[name])]
        return SettingsForm.of(mirror, mine), [
            (str(self.fields[name].label), self._shown(name, was), self._shown(name, now)) for name in changed
        ]

    def _shown(self, name: str, values: Mapping[str, Any]) -> str:
        """A setting in the words that the form has for it."""
        value = values[name]
        words = dict(getattr(self.fields[name], "choices", ()))
        return words[value] if isinstance(value, str) and value in words else shown(value)

    def refuse(self, error: LakeMirrorError) -> None:
        """Say why a service did not accept it, beside the field that it names."""
        if error.field == "branches":
            self.add_error("include", str(error))
        else:
            super().refuse(error)


def values_of(mirror: Mirror) -> dict[str, Any]:
    """A mirror's settings by the form's fields."""
    return {
        "include": "\n".join(mirror.selected["include"]),
        "exclude": "\n".join(mirror.selected["exclude"]),
        "tags": mirror.tags,
        "depth": mirror.depth,
        "content_sample": mirror.content_sample,
        "object_replication": mirror.object_replication,
        "copying_paused": mirror.copying_paused,
        "copy_workers": mirror.copy_workers,
        "copy_bytes_per_second": mirror.copy_bytes_per_second,
        "copy_objects_per_second": mirror.copy_objects_per_second,
        "branch_priority": "\n".join(mirror.branch_priority),
        "follow_gc": mirror.follow_gc,
        "delete_percent": mirror.delete_percent,
        "delete_most": mirror.delete_most,
        "imported": mirror.imported,
        "repair_tampering": mirror.repair_tampering,
        "first_sync": mirror.first_sync,
        "hold": "\n".join(map(str, policies_of(mirror.hold))),
        "rpo_seconds": mirror.rpo_seconds,
        "labels": "\n".join(mirror.label_words),
        "paused": mirror.paused,
    }


def _same(value: Any, other: Any) -> bool:
    """Whether two values, typed or stored, mean the same."""
    if isinstance(value, bool) or isinstance(other, bool):
        return bool(value) == bool(other)
    if isinstance(value, int | float) or isinstance(other, int | float):
        return _number(value) == _number(other)
    return lines(str(value or "")) == lines(str(other or ""))


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
