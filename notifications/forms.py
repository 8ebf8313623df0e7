"""A channel as a form. A secret that is typed goes to the service and nowhere else; none is ever shown."""

from __future__ import annotations

from typing import Any

from django import forms

from core.notifications.channels import LONGEST_SECRET, LONGEST_URL, ChannelSecrets, ChannelWish
from notifications.models import Channel
from notifications.services import etag_of
from web.forms import ServiceForm

KEEPS = "Sealed in the database. Leave it empty to keep the one that is there."
SECRETS = ("url", "signing_secret")


def secret(label: str, help_text: str, longest: int) -> forms.CharField:
    """One that is typed, and not shown again, even if the form comes back."""
    widget = forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"})
    return forms.CharField(label=label, required=False, max_length=longest, widget=widget, help_text=help_text)


class ChannelForm(ServiceForm):
    """All of a channel, in the words of the API. `seen`: the settings that the form was made from."""

    name = forms.CharField(label="Name", max_length=63, help_text="Letters, digits, _ . and -, like on-call.")
    url = secret(
        "Address", "Where messages are posted to, like https://host/path. It is never shown again.", LONGEST_URL
    )
    signing_secret = secret(
        "Signing secret", "The receiver checks with it that messages are ours: 16 characters or more.", LONGEST_SECRET
    )
    enabled = forms.BooleanField(label="Enabled", required=False, initial=True)
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for name in SECRETS:
            self.fields[name].widget.attrs["autocomplete"] = "new-password"

    @classmethod
    def of(cls, row: Channel) -> ChannelForm:
        """The settings as they are."""
        return cls(initial={"name": row.name, "enabled": row.enabled, "seen": etag_of(row)}).pinned()

    def pinned(self) -> ChannelForm:
        """Of one that is there: its name stays, and its secrets unless others are typed."""
        self.fields["name"].disabled = True
        for name in SECRETS:
            self.fields[name].help_text = KEEPS
        return self

    @property
    def wish(self) -> ChannelWish:
        """What the service takes. Of a form that is valid."""
        return ChannelWish(self.cleaned_data["name"], enabled=self.cleaned_data["enabled"])

    @property
    def secrets(self) -> ChannelSecrets:
        """What was typed of them."""
        return ChannelSecrets(self.cleaned_data["url"], self.cleaned_data["signing_secret"])
