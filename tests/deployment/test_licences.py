"""What may be installed: every package's licence is known and on the list, and the page tells it."""

from __future__ import annotations

from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any, cast

import pytest
from supply import DEVELOPMENT, IMAGE, ROOT, licences
from supply.licences import Allowed, allowed, permitted, problems, told
from supply.packages import Installed, Package, installed, locked

DEMO = Allowed(frozenset({"MIT"}), frozenset({"GPL-3.0-or-later"}), read={"odd": "MIT"}, shipped={})


class Said(Distribution):
    """A package whose metadata is given."""

    def __init__(self, version: str, fields: list[tuple[str, str]]) -> None:
        self._said = Message()
        for field in [("Name", "one"), ("Version", version), *fields]:
            self._said.add_header(*field)

    @property
    def metadata(self) -> Any:
        return self._said

    def read_text(self, filename: str) -> str | None:
        return None

    def locate_file(self, path: Any) -> Any:
        raise NotImplementedError


def environment(name: str, *fields: tuple[str, str], version: str = "1.0") -> Installed:
    return {name: Said(version, list(fields))}


def test_every_package_may_be_where_it_is_installed() -> None:
    assert problems(locked((*IMAGE, *DEVELOPMENT)), installed(), allowed()) == []


def test_the_page_tells_what_is_in_the_image() -> None:
    text = licences.page(locked(IMAGE), installed(), allowed())
    assert licences.PAGE.read_text() == text, "./scripts/licences --write writes it anew"


def test_every_file_that_is_served_from_elsewhere_has_a_licence_on_the_list() -> None:
    allow = allowed()
    assert set(allow.shipped) == {path.name for path in (ROOT / "static" / "vendor").iterdir()}
    assert all(permitted(expression, allow.image) for expression in allow.shipped.values())


def test_nothing_stays_on_the_list_that_is_installed_no_more() -> None:
    assert set(allowed().read) <= {package.key for package in locked((*IMAGE, *DEVELOPMENT))}


def test_the_image_has_the_stages_that_its_dockerfile_installs() -> None:
    assert f"for stage in {' '.join(IMAGE)};" in (ROOT / "deploy" / "Dockerfile").read_text()


@pytest.mark.parametrize(
    ("fields", "expression"),
    [
        ([("License-Expression", "MIT AND PSF-2.0"), ("License", "something else")], "MIT AND PSF-2.0"),
        ([("License", "Apache-2.0")], "Apache-2.0"),
        ([("License", "BSD 3-Clause License\n\nCopyright (c) of them")], "BSD-3-Clause"),
        ([("License", "BSD 3-Clause OR Apache-2.0")], "BSD-3-Clause OR Apache-2.0"),
        ([("License", ""), ("Classifier", "License :: OSI Approved :: MIT License")], "MIT"),
        ([("License", "BUSL-1.1")], "BUSL-1.1"),
    ],
)
def test_metadata_tells_the_licence(fields: list[tuple[str, str]], expression: str) -> None:
    assert told(Said("1.0", fields).metadata) == expression


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [("License", "BSD"), ("Classifier", "License :: OSI Approved :: BSD License")],
        [("License", "Dual License")],
        [
            ("Classifier", "License :: OSI Approved :: MIT License"),
            ("Classifier", "License :: OSI Approved :: Apache Software License"),
        ],
    ],
)
def test_where_metadata_leaves_a_doubt_nothing_is_guessed(fields: list[tuple[str, str]]) -> None:
    assert told(Said("1.0", fields).metadata) == ""


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("MIT AND (GPL-3.0-only OR Zlib)", True),
        ("(MIT AND GPL-3.0-only) OR GPL-2.0-only", False),
        ("GPL-2.0-only OR MIT AND Zlib", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", True),
        ("GPL-2.0-only", False),
    ],
)
def test_an_expression_is_permitted_if_one_may_choose_so(expression: str, answer: bool) -> None:
    assert permitted(expression, {"MIT", "Zlib", "GPL-2.0-only WITH Classpath-exception-2.0"}) is answer


@pytest.mark.parametrize("text", ["", "MIT AND", "(MIT", "MIT)", "MIT Zlib", "OR MIT"])
def test_what_is_no_expression_is_not_permitted(text: str) -> None:
    with pytest.raises(ValueError, match="no SPDX expression"):
        permitted(text, {"MIT", "Zlib"})


@pytest.mark.parametrize(
    ("name", "stage", "there", "words"),
    [
        ("one", "web", environment("one", ("License", "MIT")), ""),
        (
            "one",
            "web",
            environment("one", ("License", "BUSL-1.1")),
            "BUSL-1.1 is not among the licences that the image",
        ),
        ("one", "web", environment("one", ("License", "GPL-3.0-or-later")), "is not among"),
        ("one", "test", environment("one", ("License", "GPL-3.0-or-later")), ""),
        ("one", "web", environment("one"), "names no licence for certain. Read its licence file"),
        ("odd", "web", environment("odd"), ""),
        ("odd", "web", environment("odd", ("License", "MIT")), "take it out of [read]"),
        ("one", "web", {}, "it is not installed. ./scripts/test installs"),
        ("one", "web", environment("one", ("License", "MIT"), version="0.9"), "0.9 is installed"),
    ],
)
def test_a_package_that_may_not_be_there_is_told_with_the_way_on(
    name: str, stage: str, there: Installed, words: str
) -> None:
    found = problems([Package(name, "1.0", stage)], there, DEMO)
    assert [words in line for line in found] == ([True] if words else [])


def test_what_is_wrong_ends_with_1_and_writes_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(licences, "installed", lambda: cast(Installed, {}))
    monkeypatch.setattr(licences, "PAGE", tmp_path / "third-party.md")
    assert licences.main(["--write"]) == 1
    assert "it is not installed" in capsys.readouterr().out and not (tmp_path / "third-party.md").exists()
