"""Sentences in parts, so that a page can set names and ids apart while the API and logs get plain text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SHORT_ID = 8


class Kind(StrEnum):
    """What a part of a sentence is."""

    TEXT = "text"
    NAME = "name"
    ID = "id"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a sentence; an id is kept whole and shown short."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return self.text[:SHORT_ID] if self.kind is Kind.ID else self.text


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence or a part of one. `str()` gives it as plain text."""

    parts: tuple[Part, ...] = ()

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def __bool__(self) -> bool:
        return bool(self.parts)


def say(*pieces: Phrase | str) -> Phrase:
    """Join phrases and plain text."""
    parts: list[Part] = []
    for piece in pieces:
        parts.extend(piece.parts if isinstance(piece, Phrase) else (Part(Kind.TEXT, piece),))
    return Phrase(tuple(part for part in parts if part.text))


def name(text: str) -> Phrase:
    """Something's name, like a branch's."""
    return Phrase((Part(Kind.NAME, text),))


def short(commit_id: str) -> Phrase:
    """An id, shown by its first eight characters."""
    return Phrase((Part(Kind.ID, commit_id),))


def code(text: str) -> Phrase:
    """Something to be read letter by letter, like a path."""
    return Phrase((Part(Kind.CODE, text),))


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: "1 commit", "1,204 commits"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def sentence(*pieces: Phrase | str) -> Phrase:
    """The pieces as a sentence of its own: with a capital at its start and one full stop at its end."""
    joined = say(*pieces)
    if not joined:
        return joined
    first = joined.parts[0]
    if first.kind is Kind.TEXT:
        joined = Phrase((Part(Kind.TEXT, first.text[0].upper() + first.text[1:]), *joined.parts[1:]))
    return joined if str(joined).rstrip().endswith((".", "!", "?")) else say(joined, ".")


def sentences(*phrases: Phrase) -> Phrase:
    """Sentences after one another; empty ones are left out."""
    joined = say()
    for phrase in phrases:
        if phrase:
            joined = say(joined, " ", phrase) if joined else phrase
    return joined
