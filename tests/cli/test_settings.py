"""Where the url and the key come from, and what is wrong with them is said without showing them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakemirror.errors import WrongUsage
from lakemirror.settings import Settings, read_settings

FILE = "url: https://lm.example.com\naccess_key_id: AKIA1\nsecret_access_key: s3cret\n"
FROM_FILE = Settings("https://lm.example.com", "AKIA1", "s3cret")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a person who keeps it to themselves."""
    path = tmp_path / ".config" / "lakemirror.yaml"
    path.parent.mkdir()
    path.touch(mode=0o600)
    path.write_text(FILE)
    return path


def test_the_file_is_enough(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_settings() == FROM_FILE
    assert capsys.readouterr().err == ""


def test_the_environment_goes_before_the_file_and_the_command_line_before_both(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEMIRROR_URL", "http://localhost:8008/")
    assert read_settings().url == "http://localhost:8008"
    assert read_settings("https://other.example.com/lm/service/replication/v1").url == "https://other.example.com/lm"


def test_two_halves_of_different_keys_are_not_put_together(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEMIRROR_ACCESS_KEY_ID", "AKIA2")
    with pytest.raises(WrongUsage, match="LAKEMIRROR_SECRET_ACCESS_KEY is not set"):
        read_settings()


def test_a_file_that_others_can_read_is_used_with_a_warning(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.chmod(0o644)
    assert read_settings() == FROM_FILE
    assert capsys.readouterr().err == (
        "lakemirror: others can read ~/.config/lakemirror.yaml, which holds a secret: "
        "chmod 600 ~/.config/lakemirror.yaml\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "nothing says the url: set LAKEMIRROR_URL, or 'url' in"),
        ("url: https://lm.example.com", "nothing says the access_key_id: set LAKEMIRROR_ACCESS_KEY_ID"),
        (FILE + "secret: s3cret", "'secret' is not a known field"),
        ("secret_access_key: [s3cret", "is not YAML"),
        ("s3cret", "must have url, access_key_id, secret_access_key"),
        (FILE.replace("s3cret", "12345"), "each a string (quoted if it looks like a number)"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_without_its_secret(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    with pytest.raises(WrongUsage) as caught:
        read_settings()
    assert words in caught.value.message
    assert "s3cret" not in caught.value.message and "12345" not in caught.value.message


@pytest.mark.parametrize("url", ["localhost:8008", "ftp://x", "https://", "https://x?a=b", "http://[::1"])
def test_what_is_no_url_is_refused(file: Path, url: str) -> None:
    with pytest.raises(WrongUsage, match=r"the url must look like https://"):
        read_settings(url)


def test_a_url_with_a_secret_is_refused_unseen(file: Path) -> None:
    with pytest.raises(WrongUsage) as caught:
        read_settings("https://AKIA1:s3cret@lm.example.com")
    assert "s3cret" not in caught.value.message


def test_the_secret_is_in_no_representation() -> None:
    assert "s3cret" not in repr(FROM_FILE)
