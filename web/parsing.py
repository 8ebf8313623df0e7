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
        """The body's value. ParseError for what is no JSON or nested too deeply, Invalid for what is no real text."""
        try:
            return require_text(super().parse(stream, media_type, parser_context))
        except RecursionError:
            raise ParseError("JSON parse error - nested too deeply") from None


def require_text(value: Any) -> Any:
    """The value itself. Raises Invalid, naming the field, if a text in it has a NUL character, or half of one."""
    for path, text in _texts(value):
        if "\0" in text:
            raise Invalid("a text in the body contains a NUL character", field=path)
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise Invalid("a text in the body contains a lone surrogate", field=path)
    return value


def _texts(value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value with its dotted path; a key with the path of what it is a key of."""
    ahead = [("", value)]
    while ahead:
        path, item = ahead.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, Mapping):
            for key, below in item.items():
                yield path, key
                ahead.append((_below(path, key), below))
        elif isinstance(item, list):
            ahead += [(_below(path, str(number)), below) for number, below in enumerate(item)]


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
