"""What the API reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.parsers import JSONParser


class BoundedJSONParser(JSONParser):
    """JSON of at most DATA_UPLOAD_MAX_MEMORY_SIZE bytes; DRF alone reads however much it is sent.

    WSGI gives no more than Content-Length says, and nothing without one.
    """

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """The parsed body; RequestDataTooBig before the first byte of a larger one is read."""
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        length = int((parser_context or {})["request"].META.get("CONTENT_LENGTH") or 0)
        if length > most:
            raise RequestDataTooBig(f"the body has {length} bytes; at most {most} are read")
        return super().parse(stream, media_type, parser_context)
