"""What people type. The checks that count are those of the services; a form only carries and repeats them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from core.bringing import (
    LEAST_BYTES_PER_SECOND,
    MOST_BYTES_PER_SECOND,
    MOST_OBJECTS_PER_SECOND,
    MOST_WORKERS,
    ObjectReplication,
)
from core.errors import Invalid
from core.mirroring.branch_selection import ALL
from core.mirroring.rpo import LATE_AFTER, LONGEST_RPO, in_words
from core.text.phrases import SHORT_ID
from deployment import config
from installations.region_usage import region_facts
from mirrors.preflight.questions import Plan
from mirrors.views.settings_form import DEPTHS, REPLICATIONS
from web.forms import ServiceForm, lines


class CopyLimitsForm(forms.Form):
    """How much is copied at most; empty: any number."""

    copy_workers = forms.IntegerField(label="Objects at once", min_value=1, max_value=MOST_WORKERS)
    copy_bytes_per_second = forms.IntegerField(
        label="Bytes per second", required=False, min_value=LEAST_BYTES_PER_SECOND, max_value=MOST_BYTES_PER_SECOND
    )
    copy_objects_per_second = forms.IntegerField(
        label="Objects per second", required=False, min_value=1, max_value=MOST_OBJECTS_PER_SECOND
    )

    def limits(self) -> dict[str, int | None]:
        """By column. Raises Invalid, with what is wrong of each field."""
        if not self.is_valid():
            wrong = (f"{self.fields[name].label}: {' '.join(errors)}" for name, errors in self.errors.items())
            raise Invalid(" ".join(wrong))
        return self.cleaned_data


class MirrorForm(ServiceForm):
    """A new mirror, in the words of the API."""

    source_repository = forms.CharField(label="Repository", max_length=64, help_text="Its name in lakeFS, like lake.")
    source_region = forms.ChoiceField(label="Its region", widget=forms.RadioSelect)
    region = forms.ChoiceField(
        label="Region of the mirror", widget=forms.RadioSelect, help_text="Where the copy is read."
    )
    name = forms.CharField(
        label="Name of the mirror",
        max_length=200,
        help_text="Also the name of the repository created there: 3 to 63 lower-case letters, digits and dashes.",
    )
    storage_namespace = forms.CharField(
        label="Storage namespace",
        max_length=2000,
        help_text="Where the objects go, like s3://bucket/lake; apart from the source's own. "
        "With native replication, where your rule puts them.",
    )
    object_replication = forms.ChoiceField(
        label="Object replication", choices=REPLICATIONS, initial=ObjectReplication.NATIVE.value, required=False
    )

    include = forms.CharField(
        label="Branches to mirror",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One name or glob per line, like release-*; * also matches /. Empty: all branches.",
    )
    exclude = forms.CharField(
        label="Branches to leave out",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One name or glob per line, like tmp-*. The default branch is always mirrored.",
    )

    tags = forms.BooleanField(label="Mirror tags too", required=False)
    adopt = forms.BooleanField(
        label="Adopt a read-only repository that exists already",
        required=False,
        help_text="For a read-only copy of this source with this name and storage namespace.",
    )
    depth = forms.ChoiceField(
        label="Validate objects by", required=False, choices=[("", "Default (presence, size and ETag)"), *DEPTHS]
    )
    rpo_seconds = forms.IntegerField(
        label="Lag target, in seconds",
        required=False,
        min_value=1,
        max_value=LONGEST_RPO,
        help_text=f"A branch that is further behind is late. Empty: {in_words(LATE_AFTER.total_seconds())}.",
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        facts = {each.name: each for each in region_facts(config.current().lakefs_regions)}
        self.fields["source_repository"].widget.attrs["list"] = "pick-repositories"
        self.fields["storage_namespace"].widget.attrs["list"] = "pick-namespaces"
        self.fields["source_region"].choices = list(facts.items())
        self.fields["region"].choices = [(region, facts[region]) for region in config.current().lakefs_regions]

    @classmethod
    def fresh(cls) -> MirrorForm:
        """The empty form, with the likeliest regions chosen."""
        return cls(initial={"source_region": config.current().region, "region": likely_region()})

    @classmethod
    def typed(cls, data: Mapping[str, str]) -> MirrorForm:
        """The form with what was typed so far, which nobody has to answer for yet."""
        return cls(initial={name: data.get(name, "") for name in cls.base_fields})

    @property
    def plan(self) -> Plan:
        """What was typed, be it finished or not."""
        values = {name: str(self[name].value() or "").strip() for name in self.fields}
        return Plan(
            **{name: values[name] for name in ("source_repository", "source_region", "name", "region")},
            storage_namespace=values["storage_namespace"],
            include=tuple(lines(values["include"])) or ALL,
            exclude=tuple(lines(values["exclude"])),
            tags=bool(self["tags"].value()),
            managed=values["object_replication"] == ObjectReplication.MANAGED,
            adopt=bool(self["adopt"].value()),
            depth=values["depth"],
            rpo_seconds=values["rpo_seconds"],
        )

    @property
    def creation(self) -> dict[str, Any]:
        """What was typed, as `services.mirror_create` takes it."""
        given = dict(self.cleaned_data)
        include, exclude = (lines(given.pop(name)) for name in ("include", "exclude"))
        chosen = {"selected": {"include": include or list(ALL), "exclude": exclude}, "tags": given.pop("tags")}
        more = {name: given.pop(name) for name in ("depth", "rpo_seconds")}
        chosen["object_replication"] = given.pop("object_replication") or ObjectReplication.NATIVE.value
        return given | {"settings": chosen | {name: value for name, value in more.items() if value}}


def likely_region() -> str:
    """Where a mirror most likely goes: away from here."""
    known = config.current()
    return next((region for region in known.lakefs_regions if region != known.region), known.region)


class WaiverForm(forms.Form):
    """Why a commit may be unreadable, and its id or the mirror's name, typed, so that none is waived by a slip."""

    reason = forms.CharField(
        label="Why may it stay unreadable?",
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Shown to everybody who sees the mirror, and recorded in the audit log.",
        error_messages={"required": "Give a reason for those who come across this commit later."},
    )
    typed = forms.CharField(required=False)

    def __init__(self, *args: Any, commit: str, mirror: str, **more: Any) -> None:
        super().__init__(*args, label_suffix="", **more)
        self.commit, self.mirror = commit, mirror
        self.fields["typed"].label = f"Type {commit[:SHORT_ID]} or {mirror} to waive it"
        self.fields["typed"].widget.attrs.update(autocapitalize="none", autocomplete="off", spellcheck="false")

    def clean_typed(self) -> str:
        """The mirror's name, or the commit's id: its first eight digits or more."""
        typed: str = self.cleaned_data["typed"].strip().lower()
        is_id = len(typed) >= SHORT_ID and self.commit.startswith(typed)
        if not is_id and typed != self.mirror:
            wanted = f"{self.commit[:SHORT_ID]} or {self.mirror}"
            raise forms.ValidationError(f"Type {wanted} exactly as shown. Nothing was waived.")
        return typed


class ObjectWaiverForm(forms.Form):
    """Why an object may be missing, and the mirror's name, typed."""

    reason = forms.CharField(
        label="Why may it be missing?",
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Everybody who sees the mirror can read it, and it stays in the audit trail.",
        error_messages={"required": "Say why: whoever misses this object later has to know."},
    )
    typed = forms.CharField(required=False)

    def __init__(self, *args: Any, mirror: str, **more: Any) -> None:
        super().__init__(*args, label_suffix="", **more)
        self.mirror = mirror
        self.fields["typed"].label = f"Type {mirror} to waive it for every commit"
        self.fields["typed"].widget.attrs.update(autocapitalize="none", autocomplete="off", spellcheck="false")

    def clean_typed(self) -> str:
        """Exactly the mirror's name."""
        typed: str = self.cleaned_data["typed"].strip()
        if typed != self.mirror:
            raise forms.ValidationError(f"Type {self.mirror} exactly as it stands here. Nothing was waived.")
        return typed


class DeletionForm(ServiceForm):
    """The name, typed, so that no mirror goes by a slip."""

    typed = forms.CharField(label="Type the mirror's name to delete it", required=False)

    def __init__(self, *args: Any, name: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.name = name

    def clean_typed(self) -> str:
        """Exactly the mirror's name."""
        typed: str = self.cleaned_data["typed"]
        if typed.strip() != self.name:
            raise forms.ValidationError(f"Type {self.name} exactly as shown. Nothing was deleted.")
        return typed
