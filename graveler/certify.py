"""What a commit holds, told by its bytes alone: the same bytes give the same digest, whoever asks and wherever.

The chain: a commit's id covers its metarange's id, that covers the ids of its ranges, those cover their entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from graveler.content import Content
from graveler.errors import FormatError
from graveler.files import load
from graveler.metarange import RangeRef, read_metarange
from graveler.ranges import read_range_columns

Reader = Callable[[str], bytes]
"""Gives the bytes of the metadata file of an id; raises OSError where it can't."""


@dataclass(frozen=True, slots=True)
class Account:
    """What was found: the content, or each file that is missing or wrong."""

    content: Content | None
    problems: tuple[str, ...] = ()


def take_account(commit: str, metarange: str, read: Reader) -> Account:
    """Read a commit's metarange ("" for the first one of a repository) and all of its ranges, recomputing their ids."""
    try:
        name = f"metarange {metarange}"
        refs = read_metarange(read(metarange), expected_id=metarange, file=name) if metarange else []
    except (FormatError, OSError) as error:
        return Account(None, (_problem_text(name, error),))
    entries, size, problems = 0, 0, []
    for ref in refs:
        try:
            range_entries, range_size = _count(ref, read)
            entries, size = entries + range_entries, size + range_size
        except (FormatError, OSError) as error:
            problems.append(_problem_text(f"range {ref.id}", error))
    content = Content(commit, metarange, len(refs), entries, size)
    return Account(None if problems else content, tuple(problems))


def _count(ref: RangeRef, read: Reader) -> tuple[int, int]:
    """Entries of a range, and the bytes of their objects."""
    columns = read_range_columns(read(ref.id), expected_id=ref.id, file=f"range {ref.id}")
    return columns.num_rows, pc.sum(columns.column("size")).as_py() or 0


def _problem_text(name: str, error: FormatError | OSError) -> str:
    return str(error) if isinstance(error, FormatError) else f"{name}: {error.strerror or error}"


def files_in(folder: Path) -> Reader:
    """Reads from a copy of a storage namespace, or of its `_lakefs/`. Raises FormatError if the folder is neither."""
    metadata = folder if folder.name == "_lakefs" else folder / "_lakefs"
    if not metadata.is_dir():
        raise FormatError(str(folder), 0, "a folder on this disk with _lakefs/ in it (of a namespace in S3: a copy)")
    return lambda file_id: load(metadata / file_id)
