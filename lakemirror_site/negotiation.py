"""The API speaks JSON, whatever a caller would rather have: RFC 9110 (12.5.1) leaves that to the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request


class JsonOnly(DefaultContentNegotiation):
    """No 406, and no `?format=`."""

    def select_renderer(self, request: Request, renderers: Sequence[Any], format_suffix: str | None = None) -> Any:
        """The first renderer, which is JSON's."""
        return renderers[0], renderers[0].media_type
