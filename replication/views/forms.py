"""What people type about a rule. The checks that count are those of the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from core import labels
from core.errors import Invalid, LakeMirrorError
from core.mirroring.rpo import in_words
from core.replicating.deletes import DELETE_MOST, DELETE_PERCENT, MOST_MOST
from core.replicating.states import Order, Prevails, Versions
from core.replicating.wishes import LAST_PRIORITY, MOST_SWEEP_HEADS, MOST_TARGETS, SCAN_EVERY, RuleWish, TargetWish
from core.travelling.describing import Metadata, check_tags
from deployment import config
from deployment.wiring import region_settings
from replication.api.bodies import LONGEST_NAME, LONGEST_URI
from replication.models import Rule
from replication.services.rules import TRAVELLING, TURNS

INTERVALS = (60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400)
BOUNDS = {"delete_percent": DELETE_PERCENT, "delete_most": DELETE_MOST}
"""What holds where somebody left a field empty."""
ADD = "add"
"""The button that asks for another target."""
LONGEST_LABELS = 4000
LONGEST_TAGS = 5000
TRAVELS = ("metadata", "storage_class", "sweep_heads_per_second")
DELETES = ("markers", "purges", "delete_percent", "delete_most")
PLAIN = ("existing", "new", "scan_every", "order", "priority", *TRAVELS, *DELETES)
"""Settings that a form has as the service takes them."""


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
    order = forms.ChoiceField(
        label="Copied first",
        required=False,
        choices=[
            (Order.NEW_FIRST.value, "What was noted last"),
            (Order.OLDEST_FIRST.value, "What waits longest"),
        ],
        initial=Order.NEW_FIRST.value,
        help_text="Of what is still to be copied. What waits longest has one turn in four in any case.",
    )
    priority = forms.IntegerField(
        label="Priority",
        required=False,
        min_value=0,
        max_value=LAST_PRIORITY,
        help_text="Among rules whose targets share a limit of their store: 0 comes first.",
    )
    metadata = forms.ChoiceField(
        label="What travels",
        required=False,
        choices=[
            (Metadata.ALL.value, "Content, headers, tags and locks, and changes of them"),
            (Metadata.CONTENT.value, "Content, with the headers of the first copy"),
        ],
        initial=Metadata.ALL.value,
        help_text="Locks are retention and legal holds: the target's bucket needs Object Lock for them.",
    )
    tags = forms.CharField(
        label="Only objects with these tags",
        required=False,
        max_length=LONGEST_TAGS,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="One in a line, like team=sales. An object is copied if it has all of them.",
    )
    storage_class = forms.CharField(
        label="Storage class of copies",
        required=False,
        max_length=64,
        help_text="Empty: the store's default; same: the source's; or a name like STANDARD_IA.",
    )
    sweep_heads_per_second = forms.IntegerField(
        label="Objects a second to ask for changed metadata",
        required=False,
        min_value=0,
        max_value=MOST_SWEEP_HEADS,
        help_text="Listings don't show changes of headers, tags and locks. 0: only what events tell is looked at.",
    )
    markers = forms.BooleanField(
        label="Follow deletions",
        required=False,
        help_text="What is deleted at the source, and was copied by this rule, is deleted at the targets, too.",
    )
    purges = forms.BooleanField(
        label="Follow purges",
        required=False,
        help_text="With all versions: one that is deleted at the source for good is deleted so at the targets, too.",
    )
    delete_percent = forms.IntegerField(
        label="Deletions within 24 hours, percent",
        required=False,
        min_value=0,
        max_value=100,
        help_text="More, of what a target has, wait for approval.",
    )
    delete_most = forms.IntegerField(
        label="Deletions within 24 hours, objects",
        required=False,
        min_value=0,
        max_value=MOST_MOST,
        help_text="More wait for approval.",
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
            int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 9 else SCAN_EVERY
        )
        for field in self.fields.values():
            field.widget.attrs.update(autocapitalize="none", autocomplete="off", spellcheck="false")

    @classmethod
    def of(cls, rule: Rule) -> SettingsForm:
        """The form with what is set."""
        initial = {name: getattr(rule, name) for name in PLAIN}
        tags = "\n".join(f"{key}={value}" for key, value in sorted(rule.tags.items()))
        return cls(initial=initial | {"labels": " ".join(rule.label_words), "tags": tags})

    def clean_labels(self) -> dict[str, str]:
        """As a mapping."""
        try:
            return labels.parse(self.cleaned_data["labels"].split())
        except Invalid as error:
            raise forms.ValidationError(str(error)) from error

    def clean_tags(self) -> dict[str, str]:
        """As a mapping."""
        try:
            return check_tags(tags_in(self.cleaned_data["tags"]))
        except Invalid as error:
            raise forms.ValidationError(str(error)) from error

    def clean_priority(self) -> int:
        """Empty: the first."""
        return self.cleaned_data["priority"] or 0

    def clean_order(self) -> str:
        """One of two."""
        return str(self.cleaned_data["order"] or Order.NEW_FIRST.value)

    def clean_sweep_heads_per_second(self) -> int:
        """Empty: none."""
        return self.cleaned_data["sweep_heads_per_second"] or 0

    @property
    def changes(self) -> dict[str, Any]:
        """What the service takes. Of a form that is valid."""
        changes = {name: self.cleaned_data[name] for name in (*PLAIN, "labels", "tags")}
        changes |= {name: value for name, value in BOUNDS.items() if changes[name] is None}
        absent = {name for name in (*TRAVELLING, *TURNS) if name not in self.data}
        return {name: value for name, value in changes.items() if name not in absent}

    def clean_metadata(self) -> str:
        """One of two."""
        if not self.cleaned_data["metadata"] and "metadata" in self.data:
            raise forms.ValidationError("Choose one")
        return str(self.cleaned_data["metadata"])

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
    conflict = forms.ChoiceField(
        label="Where both sides have an object",
        choices=[(Prevails.SOURCE.value, "The source's replaces it"), (Prevails.NEWEST.value, "The newer one stays")],
        required=False,
        help_text="Rules that lead both ways, or in a ring, need the newer one to stay, in all of them. It can't be "
        "changed later.",
    )

    field_order = ("name", "region", "uri", "versions", "conflict", *PLAIN, "labels", "tags")

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
        initial = {"existing": True, "new": True, "scan_every": SCAN_EVERY}
        initial |= {"metadata": Metadata.ALL.value, "sweep_heads_per_second": 0}
        initial |= {"order": Order.NEW_FIRST.value, "priority": 0}
        initial |= BOUNDS
        known = region_settings.names()
        source = config.current().region if config.current().region in known else (known or [""])[0]
        others = [region for region in known if region != source]
        return cls(initial=initial | {"region": source, "target_0_region": (others or [source])[0]})

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
            conflict=values["conflict"] or Prevails.SOURCE.value,
            scan_every=_number(every, SCAN_EVERY),
            tags=tags_in(values["tags"]),
            metadata=values["metadata"],
            storage_class=values["storage_class"],
            sweep_heads_per_second=_number(values["sweep_heads_per_second"], 0),
            markers=bool(self["markers"].value()),
            priority=_number(values["priority"], 0),
            order=values["order"] or Order.NEW_FIRST.value,
            purges=bool(self["purges"].value()),
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
            conflict=given["conflict"] or Prevails.SOURCE.value,
            **self.changes,
        )


def tags_in(typed: str) -> dict[str, str]:
    """Tags, one in a line; a line without a value is a tag without one."""
    lines = [line.strip() for line in typed.splitlines() if line.strip()]
    return {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}


def _number(typed: str, otherwise: int) -> int:
    """What was typed, if it is a number."""
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 9 else otherwise


def targets_in(data: Mapping[str, str]) -> int:
    """For how many targets a form that was sent had fields."""
    return max(1, *(at + 1 for at in range(MOST_TARGETS) if f"target_{at}_uri" in data), 1)


def _targets(values: Mapping[str, str], number: int) -> list[TargetWish]:
    """Those that have an address."""
    found = ((values[f"target_{at}_region"], values[f"target_{at}_uri"].strip()) for at in range(number))
    return [TargetWish(region, uri) for region, uri in found if uri]
