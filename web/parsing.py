"""Bodies of the API: JSON that can be stored and repeated in an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from core.errors import Invalid


class WholeJSON(JSONParser):
    """DRF's, but what no database takes and no answer can hold is refused here, once for all fields."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """The body's value. ParseError for what is no JSON, is nested too deeply or holds no real text."""
        try:
            return require_text(super().parse(stream, media_type, parser_context))
        except RecursionError:
            raise ParseError("JSON parse error - nested too deeply") from None
        except Invalid as error:
            raise ParseError(str(error)) from None


def require_text(value: Any) -> Any:
    """The value itself. Raises Invalid if a text in it has a NUL character, or half of a character."""
    for text in _texts(value):
        if "\0" in text:
            raise Invalid("a text in the body has a NUL character")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise Invalid("a text in the body has half of a character (a lone surrogate)")
    return value


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, keys included."""
    ahead = [value]
    while ahead:
        item = ahead.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            ahead += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            ahead += item
