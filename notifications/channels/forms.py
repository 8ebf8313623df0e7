"""A channel as a form. A secret that is typed goes to the service and nowhere else; none is ever shown."""

from __future__ import annotations

from typing import Any

from django import forms

from core.errors import LakeMirrorError
from core.notifications.channels import LONGEST_SECRET, LONGEST_URL, ChannelKind, ChannelSecrets, ChannelWish
from core.notifications.hours import DAYS, WORDS, Hours
from core.notifications.kinds import AlertKind, Severity
from core.notifications.mail import LONGEST_ADDRESS, LONGEST_HOST, MailServer, Security
from core.notifications.rules import AGAIN, Rule
from notifications.channels.services import etag_of
from notifications.models import Channel
from web.forms import ServiceForm, lines

KEEPS = "Stored encrypted. Leave empty to keep the current one."
SECRETS = ("url", "apprise_url", "signing_secret", "password")
KINDS = [
    (ChannelKind.WEBHOOK.value, "Webhook: JSON, signed"),
    (ChannelKind.MAIL.value, "Email: by an SMTP server"),
    (ChannelKind.APPRISE.value, "Apprise: Slack, Teams, Telegram, PagerDuty, ntfy and others"),
]
SEVERITIES = [
    (Severity.WARNING.value, "Warning and above: everything"),
    (Severity.ERROR.value, "Error and above"),
    (Severity.CRITICAL.value, "Critical only: damage, tampering, drift"),
]


def patterns(label: str, help_text: str) -> forms.CharField:
    """Several values, one per line."""
    widget = forms.Textarea(attrs={"rows": 2})
    return forms.CharField(label=label, required=False, max_length=20_000, widget=widget, help_text=help_text)


def secret(label: str, help_text: str, longest: int) -> forms.CharField:
    """One that is typed, and not shown again, even if the form comes back."""
    widget = forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"})
    return forms.CharField(label=label, required=False, max_length=longest, widget=widget, help_text=help_text)


class ChannelForm(ServiceForm):
    """All of a channel, in the words of the API. `seen`: the settings that the form was made from."""

    name = forms.CharField(label="Name", max_length=63, help_text="Letters, digits, _ . and -, like on-call.")
    kind = forms.ChoiceField(label="Kind", choices=KINDS, required=False, help_text="Can't be changed later.")
    url = secret("URL", "Messages are posted here, like https://host/path. Never shown again.", LONGEST_URL)
    signing_secret = secret(
        "Signing secret", "16 characters or more. The receiver uses it to verify messages.", LONGEST_SECRET
    )
    apprise_url = secret("Apprise URL", "Like slack://TokenA/TokenB/TokenC. Never shown again.", LONGEST_URL)
    host = forms.CharField(label="SMTP server", required=False, max_length=LONGEST_HOST, help_text="smtp.example.com")
    security = forms.ChoiceField(
        label="Encryption", required=False, choices=[(one.value, one.word) for one in Security]
    )
    port = forms.IntegerField(
        label="Port", required=False, min_value=1, max_value=65535, help_text="Empty: 587, 465 or 25, by encryption."
    )
    username = forms.CharField(
        label="User name", required=False, max_length=LONGEST_ADDRESS, help_text="Empty: no sign-in."
    )
    password = secret("Password", "Stored encrypted. Never shown again.", LONGEST_SECRET)
    sender = forms.CharField(
        label="From", required=False, max_length=LONGEST_ADDRESS, help_text="lakemirror@example.com"
    )
    recipients = patterns("To", "One address per line.")
    least_severity = forms.ChoiceField(label="Minimum severity", choices=SEVERITIES)
    kinds = forms.MultipleChoiceField(
        label="Kinds",
        required=False,
        choices=[(kind.value, kind.word) for kind in AlertKind],
        widget=forms.CheckboxSelectMultiple,
        help_text="None selected: all kinds.",
    )
    names = patterns(
        "Mirrors, exports and rules", "One pattern per line: lake-*, or orders/main for an export. Empty: all."
    )
    labels = patterns(
        "Labels",
        "One per line: team=sales, team=s*, or team for any value. Different keys must all fit. Empty: all.",
    )
    regions = patterns("Regions", "One pattern per line, like eu-*. Empty: all.")
    tell_again_seconds = forms.TypedChoiceField(label="Remind while open", coerce=int, choices=list(AGAIN.items()))
    days = forms.MultipleChoiceField(
        label="Days",
        required=False,
        choices=list(zip(DAYS, WORDS, strict=True)),
        widget=forms.CheckboxSelectMultiple,
        help_text="None selected: at any time.",
    )
    start = forms.CharField(label="From", required=False, max_length=5, help_text="Like 08:00. Empty: 00:00.")
    end = forms.CharField(
        label="Until",
        required=False,
        max_length=5,
        help_text="Like 18:00; earlier than From: on the next day. Empty: 24:00.",
    )
    time_zone = forms.CharField(
        label="Time zone", required=False, max_length=64, help_text="Like Europe/Berlin. Empty: UTC."
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
            "kind": row.kind,
            "enabled": row.enabled,
            "least_severity": row.least_severity,
            "kinds": row.kinds,
            "names": "\n".join(row.names),
            "regions": "\n".join(row.regions),
            "labels": "\n".join(row.labels),
            "tell_again_seconds": row.tell_again_seconds,
            **row.hours,
            "seen": etag_of(row),
        }
        server = row.mail_server.fields if row.mail else {}
        server |= {"recipients": "\n".join(server["recipients"])} if server else {}
        return cls(initial=values | server).pinned(row.kind)

    def pinned(self, kind: str) -> ChannelForm:
        """Of one that is there: name and kind stay, and its secrets unless others are typed."""
        self.initial["kind"] = kind
        for name in ("name", "kind"):
            self.fields[name].disabled = True
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
            labels=tuple(lines(given["labels"])),
            tell_again_seconds=given["tell_again_seconds"],
            hours=self._hours,
        )
        return ChannelWish(given["name"], self._kind, given["enabled"], rule, self._mail)

    @property
    def secrets(self) -> ChannelSecrets:
        """What was typed of them; what belongs to another kind is left out, for its fields are not shown."""
        given = self.cleaned_data
        if self._kind == ChannelKind.MAIL:
            return ChannelSecrets(password=given["password"])
        if self._kind == ChannelKind.APPRISE:
            return ChannelSecrets(given["apprise_url"])
        return ChannelSecrets(given["url"], given["signing_secret"])

    @property
    def _kind(self) -> str:
        return str(self.cleaned_data["kind"] or ChannelKind.WEBHOOK)

    @property
    def _hours(self) -> Hours | None:
        given = self.cleaned_data
        if not given["days"]:
            return None
        times = {"start": given["start"] or "00:00", "end": given["end"] or "24:00"}
        return Hours.of(times | {"days": given["days"], "time_zone": given["time_zone"] or "UTC"})

    @property
    def _mail(self) -> MailServer | None:
        if self._kind != ChannelKind.MAIL:
            return None
        given = {name: self.cleaned_data[name] for name in ("host", "port", "username", "sender")}
        security = self.cleaned_data["security"] or Security.STARTTLS.value
        return MailServer.of(given | {"security": security, "recipients": lines(self.cleaned_data["recipients"])})

    def refuse(self, error: LakeMirrorError) -> None:
        """The address of an Apprise channel has a field of its own here."""
        if error.field == "url" and self._kind == ChannelKind.APPRISE:
            self.add_error("apprise_url", str(error))
        else:
            super().refuse(error)
