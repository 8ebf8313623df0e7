"""Tables as CSV: sent as they are read, and harmless to open in a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from web.paging import one_of

FORMATS = ("json", "csv")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A spreadsheet may take text that begins so for a formula, and run it."""


class CsvRenderer(JSONRenderer):
    """Makes `?format=csv` and `Accept: text/csv` known; the view itself sends the rows."""

    format = "csv"
    media_type = "text/csv"


class TableView(APIView):
    """A view whose rows may be asked for as CSV. Errors stay JSON."""

    renderer_classes = [JSONRenderer, CsvRenderer]

    def handle_exception(self, exc: Exception) -> Response:
        self.request.accepted_renderer, self.request.accepted_media_type = JSONRenderer(), "application/json"
        return super().handle_exception(exc)


def wants_csv(request: Request) -> bool:
    """Whether the rows are to be CSV. Raises Invalid for a format that there is not."""
    one_of(request, "format", FORMATS)
    return isinstance(request.accepted_renderer, CsvRenderer)


def csv_answer(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> StreamingHttpResponse:
    """The columns of all rows, as a file to save."""
    return lines_answer(name, _lines(columns, rows))


def lines_answer(name: str, lines: Iterable[str]) -> StreamingHttpResponse:
    """Lines of CSV that somebody has made already, as a file to save. What they raise breaks the answer off."""
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return answer


def _lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_cell(row[column]) for column in columns])


def _cell(value: Any) -> str:
    """Unknown is empty. Text that could be a formula gets an apostrophe in front."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return str(value)


class _Echo:
    """What `csv` writes to; gives the line back."""

    def write(self, line: str) -> str:
        return line
