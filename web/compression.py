"""Answers are compressed for who takes that."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class GZip(GZipMiddleware):
    """Django's, but ETags stay as they are: ours name settings and not bytes, and a weak one would be no If-Match."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress, and put the tag back."""
        tag = response.get("ETag")
        response = super().process_response(request, response)
        if tag:
            response["ETag"] = tag
        return response
