"""The body that says which open objects are tried again."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.errors import Invalid
from replication.api.bodies import LONGEST_CODE
from replication.api.fields import Text, WholeNumber
from replication.services.rules import MOST_ITEMS
from web.serializers import Body, TrueOrFalse


class RetryBody(Body):
    """Which objects are tried at once: one of the three says it."""

    all = TrueOrFalse(required=False, help_text="all that are not copied yet")
    code = Text(required=False, max_length=LONGEST_CODE, help_text="those with this code")
    items = serializers.ListField(
        child=WholeNumber(min_value=1, max_value=10**18),
        required=False,
        min_length=1,
        max_length=MOST_ITEMS,
        help_text="these, by their ids",
    )

    def which(self) -> dict[str, Any]:
        """What the service takes. Raises Invalid."""
        given = {name: value for name, value in self.validated_data.items() if value}
        if len(given) != 1:
            raise Invalid("say which objects: by one of all, code and items", field="all")
        return {"ids": given["items"]} if "items" in given else {"code": given.get("code", "")}
