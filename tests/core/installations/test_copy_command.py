"""What somebody pastes into a shell to copy one object again."""

from __future__ import annotations

import shlex

from core.installations.copy_command import Store, copy_command

AWS_US, AWS_EU = Store("", "us-east-1"), Store("", "eu-west-1")
SOURCE, PLACE = "s3://lake-us/lake/data/a b'c", "s3://lake-eu/lake-eu/data/a b'c"


def words_of(command: str) -> list[str]:
    return shlex.split(command)


def test_both_places_are_filled_in_and_quoted() -> None:
    made = copy_command(SOURCE, PLACE, source=AWS_US, destination=AWS_EU, size=7)
    assert words_of(made.command) == [
        *("aws", "s3api", "copy-object", "--copy-source", "lake-us/lake/data/a%20b%27c"),
        *("--bucket", "lake-eu", "--key", "lake-eu/data/a b'c", "--region", "eu-west-1"),
    ]
    assert made.hint == ""


def test_what_is_too_large_for_one_copy_goes_in_parts() -> None:
    made = copy_command(SOURCE, PLACE, source=AWS_US, destination=AWS_EU, size=5 * 1000**3 + 1)
    assert words_of(made.command)[:5] == ["aws", "s3", "cp", SOURCE, PLACE]
    assert "larger than 5 GB" in made.hint


def test_an_etag_of_parts_asks_for_the_same_parts() -> None:
    made = copy_command(SOURCE, PLACE, source=AWS_US, destination=AWS_EU, size=7, etag="ab12-3")
    assert "s3 cp" in made.command and "--source-region us-east-1" in made.command
    assert "in 3 parts" in made.hint and "multipart_chunksize" in made.hint


def test_between_two_stores_it_goes_through_this_machine() -> None:
    here, there = Store("http://a:1", "us-east-1"), Store("http://b:2", "eu-west-1")
    made = copy_command(SOURCE, PLACE, source=here, destination=there, size=7)
    reads, writes = made.command.split(" | ")
    assert words_of(reads)[:5] == ["aws", "s3", "cp", SOURCE, "-"] and "http://a:1" in reads
    assert words_of(writes)[:5] == ["aws", "s3", "cp", "-", PLACE] and "http://b:2" in writes
