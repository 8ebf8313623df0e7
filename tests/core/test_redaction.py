"""Secrets do not stand in lines that people read."""

from __future__ import annotations

import pytest

from core.redaction import without_secrets


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("GET https://olga:hunter2@lake.example/x failed", "GET https://***@lake.example/x failed"),
        ("postgres://lm:p%40ss@db/lm is away", "postgres://***@db/lm is away"),
        ("Authorization: Bearer abc.def-ghi sent", "Authorization: *** sent"),
        ("Authorization: Basic b2xnYTpodW50ZXIy", "Authorization: ***"),
        ("with bearer abc.def", "with bearer ***"),
        ("?X-Amz-Signature=0a1b2c&x=1", "?X-Amz-Signature=***&x=1"),
        ("?X-Amz-Credential=AKIA/2026/s3&x=1", "?X-Amz-Credential=***&x=1"),
        ('{"secret_access_key": "wJalr", "n": 1}', '{"secret_access_key": "***", "n": 1}'),
        ("password=hunter2, user=olga", "password=***, user=olga"),
        ("aws_session_token=x/y+z==", "aws_session_token=***"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(said: str, left: str) -> None:
    assert without_secrets(said) == left


def test_known_secrets_are_hidden_the_longest_first() -> None:
    assert without_secrets("key s3cr3t-more and s3cr3t", ["s3cr3t", "s3cr3t-more"]) == "key *** and ***"
    assert without_secrets("a b c", ["", "a", "b"]) == "a b c"


@pytest.mark.parametrize(
    "said",
    [
        "eu-west-1 did not answer within 10 s",
        "lake-eu: main is now at 974dd033 (first-promotion)",
        "s3://dst/lake/data/a@b: 404, and s3://dst/x:1/y",
        "the token of the branch is old",
        "basic checks of 3 ranges",
    ],
)
def test_ordinary_lines_stay(said: str) -> None:
    assert without_secrets(said) == said
