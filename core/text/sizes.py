"""Bytes as people say them."""

from __future__ import annotations

from core.text.phrases import count


def size_in_words(number: int) -> str:
    """So many bytes, by the unit of 1,024 that fits."""
    if number < 1024:
        return count(number, "byte")
    amount = number / 1024
    for unit in ("KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TB"
