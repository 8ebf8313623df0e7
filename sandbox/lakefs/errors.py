"""Refusals: the one error of the server's verbs, with lakeFS's own statuses and words."""

from __future__ import annotations


class Refused(Exception):
    """The caller gets `status` and `{"message": message}`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def not_found(what: str = "") -> Refused:
    """404, e.g. `branch not found` or `ref: not found`."""
    return Refused(404, f"{what}not found")


def invalid(message: str) -> Refused:
    """400."""
    return Refused(400, message)


def taken(message: str) -> Refused:
    """409."""
    return Refused(409, message)


def no_data() -> Refused:
    """410: the metadata file or the object of what was asked for is not in the store."""
    return Refused(410, "No data")


READ_ONLY = "read-only repository"
