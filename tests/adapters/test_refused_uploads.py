"""An upload in parts whose condition does not hold any more is given up."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.s3.multipart import Part, Uploads
from core.errors import Conflict


class Refusing:
    """A writer whose store has another object there by now. `asked`: the methods of all requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def write(self, method: str, *_: Any, **__: Any) -> None:
        self.asked.append(method)
        if method == "POST":
            raise Conflict("412 PreconditionFailed")


def test_what_is_refused_under_a_condition_leaves_no_parts() -> None:
    writer = Refusing()
    with pytest.raises(Conflict):
        Uploads(writer).complete("s3://b/k", "id", {1: Part(5, "e")}, {"if-match": '"e"'})  # type: ignore[arg-type]
    assert writer.asked == ["POST", "DELETE"]
