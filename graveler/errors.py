"""The one error of this package: bytes that are not what the format says."""

from __future__ import annotations


class FormatError(Exception):
    """A damaged, truncated or foreign file. `offset` is where in the file reading stopped making sense."""

    def __init__(self, file: str, offset: int, expected: str) -> None:
        super().__init__(file, offset, expected)
        self.file = file
        self.offset = offset
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.file or 'data'}: at byte {self.offset}: expected {self.expected}"
