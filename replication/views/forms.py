"""What people type about a rule. The checks that count are those of the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from core import labels
from core.errors import Invalid, LakeMirrorError
from core.mirroring.rpo import in_words
from core.replicating.states import Versions
from core.replicating.wishes import MOST_TARGETS, SCAN_EVERY, RuleWish, TargetWish
from deployment import config
from deployment.wiring import region_settings
from replication.api.serializers import LONGEST_NAME, LONGEST_URI
from replication.models import Rule

INTERVALS = (60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400)
ADD = "add"
"""The button that asks for another target."""
LONGEST_LABELS = 4000


def _choices(now: int = SCAN_EVERY) -> list[tuple[int, str]]:
    """What a form offers, with what is set now."""
    return [(seconds, in_words(seconds)) for seconds in sorted({*INTERVALS, now})]


class SettingsForm(forms.Form):
    """What may be changed of a rule."""

    existing = forms.BooleanField(
        label="Copy existing objects",
        required=False,
        help_text="Those that were last written before the rule was created.",
    )
    new = forms.BooleanField(
        label="Copy new objects", required=False, help_text="Those that are written after that, and changed ones."
    )
    scan_every = forms.TypedChoiceField(
        label="Compare every",
        coerce=int,
        help_text="How often both places are listed and compared. Keys that the store's events name don't wait.",
    )
    labels = forms.CharField(
        label="Labels",
        max_length=LONGEST_LABELS,
        required=False,
        help_text="Separated by blanks, like team=sales tier=gold",
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, label_suffix="", **more)
        wanted = str(self.initial.get("scan_every", ""))
        self.fields["scan_every"].choices = _choices(
            int(wanted) if wanted.isdigit() and len(wanted) < 9 else SCAN_EVERY
        )
        for field in self.fields.values():
            field.widget.attrs.update(autocapitalize="none", autocomplete="off", spellcheck="false")

    @classmethod
    def of(cls, rule: Rule) -> SettingsForm:
        """The form with what is set."""
        initial = {name: getattr(rule, name) for name in ("existing", "new", "scan_every")}
        return cls(initial=initial | {"labels": " ".join(rule.label_words)})

    def clean_labels(self) -> dict[str, str]:
        """As a mapping."""
        try:
            return labels.parse(self.cleaned_data["labels"].split())
        except Invalid as error:
            raise forms.ValidationError(str(error)) from error

    @property
    def changes(self) -> dict[str, Any]:
        """What the service takes. Of a form that is valid."""
        return {name: self.cleaned_data[name] for name in ("existing", "new", "scan_every", "labels")}

    def refuse(self, error: LakeMirrorError) -> None:
        """Say why a service did not accept it, beside the field that it names."""
        field = self._own(error.field)
        self.add_error(field if field in self.fields else None, str(error))

    def _own(self, field: str) -> str:
        """The form's name of a field of the API."""
        return field


class RuleForm(SettingsForm):
    """A new rule. It has fields for as many targets as were asked for."""

    name = forms.CharField(
        label="Name", max_length=LONGEST_NAME, help_text="Lower-case letters, digits and hyphens, like logs-to-eu"
    )
    region = forms.ChoiceField(label="Region of the source")
    uri = forms.CharField(
        label="Source", max_length=LONGEST_URI, help_text="Like s3://bucket/folder, or a whole bucket"
    )

    versions = forms.ChoiceField(
        label="Versions",
        choices=[(Versions.LATEST.value, "The latest only"), (Versions.ALL.value, "All, with delete markers")],
        required=False,
        help_text="All of them need buckets with versioning on both sides. It can't be changed later.",
    )

    field_order = ("name", "region", "uri", "versions", "existing", "new", "scan_every", "labels")

    def __init__(self, *args: Any, number: int = 1, **more: Any) -> None:
        self.number = number
        super().__init__(*args, **more)
        regions = [(region, region) for region in region_settings.names()]
        self.fields["region"].choices = regions
        for at in range(number):
            which = f" {at + 1}" if number > 1 else ""
            self.fields[f"target_{at}_region"] = forms.ChoiceField(
                label=f"Region of the target{which}", choices=regions, required=not at
            )
            self.fields[f"target_{at}_uri"] = forms.CharField(
                label=f"Target{which}",
                max_length=LONGEST_URI,
                required=not at,
                help_text="Like s3://other-bucket/folder. Objects keep their names below it.",
            )
            attrs = self.fields[f"target_{at}_uri"].widget.attrs
            attrs.update(autocapitalize="none", autocomplete="off", spellcheck="false")

    @classmethod
    def fresh(cls) -> RuleForm:
        """The empty form."""
        initial = {"region": config.current().region, "existing": True, "new": True, "scan_every": SCAN_EVERY}
        others = [region for region in region_settings.names() if region != config.current().region]
        return cls(initial=initial | {"target_0_region": (others or [config.current().region])[0]})

    @classmethod
    def typed(cls, data: Mapping[str, str], *, more: bool = False) -> RuleForm:
        """The form with what was typed so far, which nobody has to answer for yet; with fields for one `more`."""
        number = min(MOST_TARGETS, targets_in(data) + more)
        form = cls(number=number)
        form.initial = {name: data.get(name, "") for name in form.fields}
        return form

    @property
    def targets(self) -> list[tuple[Any, Any]]:
        """The fields of each target: region and address."""
        return [(self[f"target_{at}_region"], self[f"target_{at}_uri"]) for at in range(self.number)]

    @property
    def has_room(self) -> bool:
        """Whether there may be another target."""
        return self.number < MOST_TARGETS

    def plan(self) -> RuleWish:
        """What was typed, be it finished or not."""
        values = {name: str(self[name].value() or "").strip() for name in self.fields}
        every = values["scan_every"]
        return RuleWish(
            name=values["name"],
            region=values["region"],
            uri=values["uri"],
            targets=_targets(values, self.number),
            existing=bool(self["existing"].value()),
            new=bool(self["new"].value()),
            versions=values["versions"] or Versions.LATEST.value,
            scan_every=int(every) if every.isascii() and every.isdigit() and len(every) < 9 else SCAN_EVERY,
        )

    def _own(self, field: str) -> str:
        """A target's fields are numbered among those that were filled in."""
        whole, _, rest = field.partition(".")
        if whole != "targets":
            return {"source.region": "region", "source.uri": "uri"}.get(field, field)
        filled = [at for at in range(self.number) if str(self[f"target_{at}_uri"].value() or "").strip()]
        number, _, name = rest.partition(".")
        at = filled[int(number)] if number.isdigit() and int(number) < len(filled) else 0
        return f"target_{at}_{name or 'uri'}"

    @property
    def wish(self) -> RuleWish:
        """What the service takes. Of a form that is valid."""
        given = self.cleaned_data
        return RuleWish(
            name=given["name"],
            region=given["region"],
            uri=given["uri"],
            targets=_targets(given, self.number),
            versions=given["versions"] or Versions.LATEST.value,
            **self.changes,
        )


def targets_in(data: Mapping[str, str]) -> int:
    """For how many targets a form that was sent had fields."""
    return max(1, *(at + 1 for at in range(MOST_TARGETS) if f"target_{at}_uri" in data), 1)


def _targets(values: Mapping[str, str], number: int) -> list[TargetWish]:
    """Those that have an address."""
    found = ((values[f"target_{at}_region"], values[f"target_{at}_uri"].strip()) for at in range(number))
    return [TargetWish(region, uri) for region, uri in found if uri]
