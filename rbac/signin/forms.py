"""The forms that sign people in, and change passwords."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm
from django.core.exceptions import ValidationError


class SignInForm(AuthenticationForm):
    """Name and password; one message for whatever is wrong with them."""

    error_messages = {
        "invalid_login": "Wrong name or password.",
        "inactive": "Wrong name or password.",
    }

    def __init__(self, *args: Any, wait: int = 0, **kwargs: Any) -> None:
        """`wait`: seconds for which this place is not listened to; then the password isn't looked at."""
        super().__init__(*args, **kwargs)
        self.wait = wait

    def clean(self) -> dict[str, Any]:
        """Check name and password."""
        if self.wait:
            raise ValidationError(f"Too many attempts from this address. Try again in {self.wait} s.", code="wait")
        return super().clean()


class NewPasswordForm(SetPasswordForm):
    """A new password, twice; whether it will do, `rbac/signin/passwords.py` says."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, label_suffix="", **kwargs)
        self.fields["new_password1"].help_text = "At least 8 characters, and not a common password."
        self.fields["new_password2"].label = "Repeat password"
        self.fields["new_password2"].help_text = ""


class PasswordForm(NewPasswordForm):
    """One's own new password, after the old one."""

    old_password = forms.CharField(
        label="Old password", strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )
    field_order = ("old_password", "new_password1", "new_password2")
    wait = 0
    """Seconds for which this place is not listened to; then the old password isn't looked at."""

    def clean_old_password(self) -> str:
        """It is theirs."""
        if self.wait:
            raise ValidationError(f"Too many attempts from this address. Try again in {self.wait} s.", code="wait")
        given: str = self.cleaned_data["old_password"]
        if not self.user.check_password(given):
            raise ValidationError("That is not your password.")
        return given
