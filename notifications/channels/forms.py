"""A channel as a form. A secret that is typed goes to the service and nowhere else; none is ever shown."""

from __future__ import annotations

from typing import Any

from django import forms

from core.notifications.channels import LONGEST_SECRET, LONGEST_URL, ChannelSecrets, ChannelWish
from core.notifications.kinds import AlertKind, Severity
from core.notifications.rules import AGAIN, Rule
from notifications.channels.services import etag_of
from notifications.models import Channel
from web.forms import ServiceForm, lines

KEEPS = "Sealed in the database. Leave it empty to keep the one that is there."
SECRETS = ("url", "signing_secret")


SEVERITIES = [
    (Severity.WARNING.value, "Everything"),
    (Severity.ERROR.value, "Errors and what is critical"),
    (Severity.CRITICAL.value, "Only what is critical: damage, tampering, drift"),
]


def patterns(label: str, help_text: str) -> forms.CharField:
    """Several patterns, one a line."""
    widget = forms.Textarea(attrs={"rows": 2})
    return forms.CharField(label=label, required=False, max_length=20_000, widget=widget, help_text=help_text)


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
    least_severity = forms.ChoiceField(label="Told of", choices=SEVERITIES)
    kinds = forms.MultipleChoiceField(
        label="Kinds",
        required=False,
        choices=[(kind.value, kind.word) for kind in AlertKind],
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: all.",
    )
    names = patterns("Mirrors and exports", "One pattern a line, like lake-* or an export's orders/main. Empty: all.")
    regions = patterns("Regions", "One pattern a line, like eu-*. Empty: all.")
    tell_again_seconds = forms.TypedChoiceField(
        label="Told again while it lasts", coerce=int, choices=list(AGAIN.items())
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
        values = {
            "name": row.name,
            "enabled": row.enabled,
            "least_severity": row.least_severity,
            "kinds": row.kinds,
            "names": "\n".join(row.names),
            "regions": "\n".join(row.regions),
            "tell_again_seconds": row.tell_again_seconds,
            "seen": etag_of(row),
        }
        return cls(initial=values).pinned()

    def pinned(self) -> ChannelForm:
        """Of one that is there: its name stays, and its secrets unless others are typed."""
        self.fields["name"].disabled = True
        for name in SECRETS:
            self.fields[name].help_text = KEEPS
        return self

    @property
    def wish(self) -> ChannelWish:
        """What the service takes. Of a form that is valid."""
        given = self.cleaned_data
        rule = Rule(
            least_severity=given["least_severity"],
            kinds=tuple(given["kinds"]),
            names=tuple(lines(given["names"])),
            regions=tuple(lines(given["regions"])),
            tell_again_seconds=given["tell_again_seconds"],
        )
        return ChannelWish(given["name"], enabled=given["enabled"], rule=rule)

    @property
    def secrets(self) -> ChannelSecrets:
        """What was typed of them."""
        return ChannelSecrets(self.cleaned_data["url"], self.cleaned_data["signing_secret"])
