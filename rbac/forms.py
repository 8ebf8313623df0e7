"""The form that signs people in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
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
            raise ValidationError(f"Too many attempts from here. Try again in {self.wait} s.", code="wait")
        return super().clean()
