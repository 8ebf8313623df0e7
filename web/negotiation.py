"""The API speaks JSON, whatever a caller would rather have: RFC 9110 (12.5.1) leaves that to the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404
from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request


class JsonFirst(DefaultContentNegotiation):
    """No 406. Only a view that has more than JSON gives what `?format=` or `Accept` name."""

    def select_renderer(self, request: Request, renderers: Sequence[Any], format_suffix: str | None = None) -> Any:
        """What is asked for if it is there, else the first renderer, which is JSON's."""
        first = renderers[0], renderers[0].media_type
        if len(renderers) == 1:
            return first
        try:
            return super().select_renderer(request, renderers, format_suffix)
        except (Http404, NotAcceptable):
            return first
