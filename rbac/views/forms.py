"""What people type about users, groups and keys. The checks that count are those of the services."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone

from web.forms import ServiceForm


class UserForm(ServiceForm):
    """A new user."""

    username = forms.CharField(
        label="Name",
        max_length=128,
        help_text="To sign in with. Letters, digits and _ . @ + -. Can't be changed later.",
    )
    friendly_name = forms.CharField(label="Full name", max_length=200, required=False)
    email = forms.EmailField(label="E-mail", required=False)
    password = forms.CharField(
        label="Password",
        max_length=200,
        required=False,
        strip=False,
        widget=forms.PasswordInput,
        help_text="At least 8 characters. Without one the user can only use access keys, until they have set one by a "
        "link from manage.py reset_link.",
    )
    groups = forms.MultipleChoiceField(
        label="Groups",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Permissions come from these.",
    )

    policy = forms.CharField(required=False, max_length=128, widget=forms.HiddenInput)

    def __init__(self, *args: Any, groups: list[str], policy: str = "", **more: Any) -> None:
        super().__init__(*args, initial={"policy": policy}, **more)
        self.fields["groups"].choices = [(name, name) for name in groups]
        self.fields["password"].widget.attrs["autocomplete"] = "new-password"
        if not groups:
            del self.fields["groups"]


class ProfileForm(ServiceForm):
    """What may be changed of a user."""

    friendly_name = forms.CharField(label="Full name", max_length=200, required=False)
    email = forms.EmailField(label="E-mail", required=False)


class GroupForm(ServiceForm):
    """A new group."""

    name = forms.CharField(
        label="Name", max_length=128, help_text="Letters, digits and _ . @ + -. Can't be changed later."
    )
    description = forms.CharField(label="Purpose", max_length=200, required=False)


LASTING = (("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "until it is disabled"))
OVERLAPS = (("0", "at once"), ("3600", "in an hour"), ("86400", "in a day"), ("604800", "in a week"))


class KeyForm(ServiceForm):
    """A new access key."""

    description = forms.CharField(
        label="Purpose", max_length=200, required=False, help_text="Such as: nightly export of orders."
    )
    days = forms.ChoiceField(label="Valid for", choices=LASTING, required=False, initial="90")

    @property
    def expires_at(self) -> datetime | None:
        """When it ends; None for never."""
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=int(days)) if days else None


class OverlapForm(ServiceForm):
    """How long a key goes on beside the one that follows it."""

    overlap = forms.ChoiceField(label="The old key expires", choices=OVERLAPS, initial="86400")

    @property
    def lasting(self) -> timedelta:
        """The time in which both work."""
        return timedelta(seconds=int(self.cleaned_data["overlap"]))
