"""An installation as a form. A secret that is typed goes to the service and nowhere else; none is ever shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from django import forms

from core.installations.settings import LONGEST, Access, Secrets, Wish
from deployment import config
from web.forms import ServiceForm, shown, values_seen

ACCESS = [
    (Access.KEYS.value, "Access key"),
    (Access.PROFILE.value, "AWS profile"),
    (Access.CHAIN.value, "AWS default chain (environment, instance, pod)"),
]
SECRETS = ("lakefs_secret_access_key", "store_secret_access_key")
KEEPS = "Sealed in the database. Leave empty to keep the current one."


def word(label: str, help_text: str = "", *, required: bool = False) -> forms.CharField:
    """A setting that is one word."""
    return forms.CharField(label=label, help_text=help_text, required=required, max_length=LONGEST)


def secret(label: str) -> forms.CharField:
    """One that is typed, and not shown again, even if the form comes back."""
    widget = forms.PasswordInput(render_value=False)
    text = "Sealed in the database, and never shown again."
    return forms.CharField(label=label, required=False, max_length=LONGEST, widget=widget, help_text=text)


class InstallationForm(ServiceForm):
    """All of an installation, in the words of the API. `seen` and `was` are what the form was made from."""

    region = forms.CharField(
        label="Region", max_length=63, help_text="Its name in LakeMirror: a-z, 0-9 and -, like eu-west-1."
    )
    served_by = word("Handled by", "Region of the deployment whose workers handle it. Empty: this one.")
    lakefs_endpoint = word(
        "lakeFS endpoint",
        "Without /api/v1, like https://lakefs.example.com. Empty: no lakeFS, a store for replication rules.",
    )
    lakefs_access_key_id = word("lakeFS access key id", "Of a user with the policy ReplicationPolicy.")
    lakefs_secret_access_key = secret("lakeFS secret access key")
    store_endpoint = word("Store endpoint", "Empty: AWS S3.")
    store_region = word("Store region", "Empty: the same as above.")
    store_path_style = forms.BooleanField(label="Path-style addressing", required=False)
    store_access = forms.ChoiceField(label="Store credentials", choices=ACCESS)
    store_access_key_id = word("Store access key id")
    store_secret_access_key = secret("Store secret access key")
    store_profile = word("Profile", "From ~/.aws/config on every machine that uses the store, including executors.")
    store_role_arn = word("Role", "Assumed with these credentials, like arn:aws:iam::123456789012:role/mirror")
    store_role_external_id = word("External id", "If the role requires one.")
    sts_endpoint = word("STS endpoint", "Empty: AWS STS.")
    ca_bundle = word(
        "CA bundle", "A certificate file on every machine that works for this installation. Empty: the system's."
    )
    proxy = word("Proxy", "Without name and password, like http://proxy:3128. Empty: as in the environment.")
    namespace = word(
        "Address to test the store with",
        "Like s3://bucket/prefix. Not saved, and nothing is written there. Needed without lakeFS; else empty: that of "
        "one of its repositories.",
    )
    seen = forms.CharField(required=False, widget=forms.HiddenInput)
    was = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for name in SECRETS:
            self.fields[name].widget.attrs["autocomplete"] = "new-password"

    @classmethod
    def fresh(cls) -> InstallationForm:
        """The empty form."""
        return cls(initial={"served_by": config.current().region, "store_access": Access.KEYS.value})

    @classmethod
    def of(cls, wish: Wish, etag: str, typed: Mapping[str, Any] | None = None) -> InstallationForm:
        """The settings as they are; `typed` stands in their place."""
        values = asdict(wish)
        return cls(initial={**values, **(typed or {}), "seen": etag, "was": json.dumps(values)}).pinned()

    def pinned(self) -> InstallationForm:
        """Of one that is there: its name stays, and its secrets unless others are typed."""
        self.fields["region"].disabled = True
        for name in SECRETS:
            self.fields[name].help_text = KEEPS
        return self

    @property
    def uses_role(self) -> bool:
        """Whether anything of a role is filled in, or wrong."""
        return self._any("store_role_arn", "store_role_external_id", "sts_endpoint")

    @property
    def uses_network(self) -> bool:
        """The same of the network."""
        return self._any("ca_bundle", "proxy")

    @property
    def uses_profile(self) -> bool:
        """The same of a profile."""
        return self["store_access"].value() == Access.PROFILE.value or self._any("store_profile")

    def _any(self, *names: str) -> bool:
        return any(self[name].value() or self[name].errors for name in names)

    @property
    def wish(self) -> Wish:
        """What the service takes. Of a form that is valid."""
        return Wish(**{each.name: self.cleaned_data[each.name] for each in fields(Wish)})

    @property
    def place(self) -> str:
        """By which a test asks the store; it is none of the settings."""
        return str(self.cleaned_data["namespace"])

    @property
    def secrets(self) -> Secrets:
        """Those that were typed."""
        return Secrets(*(self.cleaned_data[name] for name in SECRETS))

    def over(self, now: Wish, etag: str) -> tuple[InstallationForm, list[tuple[str, str, str]]]:
        """A form of the settings of now with what was typed over them, and what others changed: label, old, new."""
        was, values = values_seen(self.data.get("was", "")), asdict(now)
        typed = {name: self[name].value() for name in values if name != "region"}
        mine = {name: value for name, value in typed.items() if (value or "") != (was.get(name) or "")}
        changed = [name for name in values if name in was and was[name] != values[name]]
        differences = [(str(self.fields[name].label), shown(was[name]), shown(values[name])) for name in changed]
        return InstallationForm.of(now, etag, mine), differences
