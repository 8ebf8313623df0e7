"""Patterns of an export: what they name, key by key and over columns alike, and what is told of a wrong one."""

from __future__ import annotations

import re
import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.regex import Patterns
from core.errors import Invalid
from core.exporting.markers import directory_of
from spark_jobs.export.patterns import last_keys, matching

PATTERNS = [r".*/2021-\d\d-\d\d/", r".*/_SUCCESS", "", ".*", "é.", "(?i)LOGS|b$", r"\Qa.b", "^a/", "[^/]*$", r"\bx"]
keys = st.one_of(st.text("ab./_éLx-", max_size=8).map(str.encode), st.binary(max_size=4))


@given(st.lists(keys, max_size=12), st.lists(st.sampled_from(PATTERNS), max_size=3))
@settings(max_examples=200, deadline=None)
def test_columns_say_what_each_key_says(chosen: list[bytes], patterns: list[str]) -> None:
    one_by_one = Patterns(patterns)
    column = pa.array(chosen, pa.binary())
    assert last_keys(column, patterns).to_pylist() == [one_by_one.is_last_key(key) for key in chosen]
    directories = [directory_of(key) for key in chosen]
    found = matching(pa.array(directories, pa.binary()), patterns).to_pylist()
    assert found == [one_by_one.matches_directory(directory) for directory in directories]


@pytest.mark.parametrize(
    ("pattern", "directory", "matches"),
    [
        (r".*/2021-\d\d-\d\d/", b"logs/2021-01-01/", True),
        (r".*/2021-\d\d-\d\d/", b"logs/2021-01-01/deeper/", True),
        (r".*/2021-\d\d-\d\d/", b"logs/", False),
        ("logs", b"my-logs-here/", True),
        ("", b"", True),
        (r".*", b"", True),
        ("/$", b"", False),
        ("^a/$", b"a/", True),
        ("^a/$", b"a/b/", False),
    ],
)
def test_a_pattern_is_searched_anywhere_in_a_directory(pattern: str, directory: bytes, matches: bool) -> None:
    assert Patterns([pattern]).matches_directory(directory) is matches


@pytest.mark.parametrize(
    ("pattern", "key", "last"),
    [
        (r".*/_SUCCESS", b"out/day=1/_SUCCESS", True),
        (r".*/_SUCCESS", b"out/day=1/_SUCCESS.crc", False),
        ("_SUCCESS", b"_SUCCESS", True),
        (r"\Q_SUCCESS", b"out/_SUCCESS", True),
        (".*", b"out/part-0", False),
        ("", b"out/part-0", False),
        ("out/", b"out/part-0", False),
        ("nothing", b"out/_lakefs_success", True),
        ("nothing", b"_lakefs_success", True),
        ("nothing", b"my_lakefs_success", False),
    ],
)
def test_a_pattern_that_ends_with_a_key_makes_it_a_last_one(pattern: str, key: bytes, last: bool) -> None:
    assert Patterns([pattern]).is_last_key(key) is last


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        (
            "a(b",
            r"pattern 2, 'a\(b', is not a valid RE2 expression: missing \), at character 2 .* Close the group with",
        ),
        (r"[(]\Q(\E(a))b", r"unexpected \), at character 12 .* Remove the \)"),
        ("a*|*.csv", r"at character 4 \('\*'\)\. Write \.\* for anything"),
        ("ab(?=c)", r"invalid perl operator, at character 3 \('\(\?='\)\. RE2 has no lookahead or lookbehind"),
        (r"(.)\1", r"invalid escape sequence, at character 4 .* has no backreferences"),
        ("ab\\", r"trailing \\, at character 3"),
        ("x**", "bad repetition operator"),
        ("\ud800", "is not a valid RE2 expression: it is not text"),
    ],
)
def test_a_wrong_pattern_is_named_with_the_place(pattern: str, told: str) -> None:
    with pytest.raises(Invalid) as caught:
        Patterns(["fine", pattern], field="lastKeysInPrefixRegexp")
    assert re.search(told, str(caught.value))
    assert caught.value.field == "lastKeysInPrefixRegexp"


def test_no_pattern_takes_long() -> None:
    started = time.monotonic()
    Patterns(["(a*)*b" * 10]).is_last_key(b"a" * 1024)
    assert time.monotonic() - started < 1
