"""What people type about an export. The checks that count are those of the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from core.errors import LakeMirrorError
from core.exporting.names import LONGEST
from deployment import config
from exports.api.serializers import LONGEST_URI
from exports.models import Export
from exports.preflight.checks import Plan
from exports.services.exports import Wish

FIELDS = {
    "exportPath": "path",
    "exportStatusPath": "status_path",
    "lastKeysInPrefixRegexp": "patterns",
}
"""The names of the API's fields, and those of the form's."""
PICKS = {
    name: {"list": f"pick-{lists}"}
    for name, lists in (
        ("repository", "repositories"),
        ("branch", "branches"),
        ("path", "paths"),
        ("status_path", "status-paths"),
    )
}
"""Lists of suggestions, by the field that has them."""
PINNED = ("region", "repository", "branch", "name")


class ExportForm(forms.Form):
    """An export, in the words of the API. Which branch it is of can't be changed later."""

    region = forms.ChoiceField(label="Region of the repository")
    repository = forms.CharField(label="Repository", max_length=64, help_text="Its name in lakeFS.")
    branch = forms.CharField(label="Branch", max_length=256)
    name = forms.CharField(
        label="Name",
        max_length=LONGEST,
        required=False,
        help_text="Only needed if the branch has several exports: tells them apart, like partner.",
    )
    path = forms.CharField(
        label="Export path",
        max_length=LONGEST_URI,
        help_text="Where the files go, under their own keys, like s3://bucket/latest",
    )
    status_path = forms.CharField(
        label="Status path",
        max_length=LONGEST_URI,
        required=False,
        help_text="Where a status file and a manifest are written after each export; not inside the export path.",
    )
    patterns = forms.CharField(
        label="Directories with a success file",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One RE2 expression per line, searched in the directory with its trailing slash, like .*/day=\\d+/ . "
        "Each directory that matches gets a _lakefs_success when everything in it has arrived. An expression that "
        "matches the end of a file's key, like .*/_SUCCESS, makes that file the last one in its directory.",
    )
    continuous = forms.BooleanField(
        label="Export every commit", required=False, help_text="Otherwise the branch is exported once, now."
    )
    manifest = forms.ChoiceField(
        label="Manifest",
        choices=Export.Manifest.choices,
        required=False,
        help_text="A list of all files of the commit, at the status path: about 100 bytes per file each time.",
    )
    actions = forms.BooleanField(
        label="Also files below _lakefs_actions/",
        required=False,
        help_text="The repository's hooks: not data, so most readers don't need them.",
    )
    objects_per_second = forms.IntegerField(
        label="Objects per second, at most", required=False, min_value=1, max_value=10**9
    )
    bytes_per_second = forms.IntegerField(
        label="Bytes per second, at most", required=False, min_value=1, max_value=10**15
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, label_suffix="", **more)
        known = config.current()
        self.fields["region"].choices = [(one, one) for one in known.served if one in known.lakefs_regions]
        for name in ("repository", "branch", "name", "path", "status_path", "patterns"):
            self.fields[name].widget.attrs.update(
                PICKS.get(name, {}), autocapitalize="none", autocomplete="off", spellcheck="false"
            )

    @classmethod
    def fresh(cls) -> ExportForm:
        """The empty form: continuous, for that is what people come for."""
        initial = {"region": config.current().region, "continuous": True, "manifest": Export.Manifest.DAILY}
        return cls(initial=initial)

    @classmethod
    def of(cls, export: Export) -> ExportForm:
        """The form with what is configured."""
        initial = {name: getattr(export, name) for name in cls.base_fields if name != "patterns"}
        return cls(initial=initial | {"patterns": "\n".join(export.patterns)}).pinned()

    @classmethod
    def typed(cls, data: Mapping[str, str], export: Export | None = None) -> ExportForm:
        """The form with what was typed so far, which nobody has to answer for yet."""
        initial = {name: data.get(name, "") for name in cls.base_fields}
        if export is None:
            return cls(initial=initial)
        return cls(initial=initial | {name: getattr(export, name) for name in PINNED}).pinned()

    def pinned(self) -> ExportForm:
        """The branch stays what it is."""
        for name in PINNED:
            self.fields[name].disabled = True
        return self

    def plan(self, export: Export | None = None) -> Plan:
        """What was typed, be it finished or not."""
        values = {name: str(self[name].value() or "").strip() for name in self.fields}
        limits = {name: _number(values[name]) for name in ("objects_per_second", "bytes_per_second")}
        wish = Wish(
            path=values["path"],
            status_path=values["status_path"],
            patterns=patterns_of(str(self["patterns"].value() or "")),
            continuous=bool(self["continuous"].value()),
            manifest=values["manifest"] or None,
            actions=bool(self["actions"].value()),
            **limits,
        )
        return Plan(values["region"], values["repository"], values["branch"], wish, export, values["name"])

    @property
    def identity(self) -> dict[str, str]:
        """Which export is meant. Of a form that is valid."""
        return {name: self.cleaned_data[name] for name in PINNED}

    @property
    def wish(self) -> Wish:
        """What the service takes. Of a form that is valid."""
        given = self.cleaned_data
        return Wish(
            path=given["path"],
            status_path=given["status_path"],
            patterns=patterns_of(given["patterns"]),
            continuous=given["continuous"],
            manifest=given["manifest"] or None,
            actions=given["actions"],
            objects_per_second=given["objects_per_second"],
            bytes_per_second=given["bytes_per_second"],
        )

    def refuse(self, error: LakeMirrorError) -> None:
        """Say why a service did not accept it, beside the field that it names."""
        named = error.field.partition("[")[0]
        field = FIELDS.get(named, named)
        self.add_error(field if field in self.fields else None, str(error))


def _number(text: str) -> int | None:
    """A limit, if it is one."""
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 16 and int(text) else None


def patterns_of(text: str) -> list[str]:
    """An expression a line; blanks in a line count, empty lines don't."""
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
