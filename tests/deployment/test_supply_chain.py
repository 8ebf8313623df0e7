"""The bill of materials and the audit: which packages, which need which, and what is said of advisories."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from launcher import supply_chain
from launcher.console import Problem
from packaging.requirements import Requirement
from supply import IMAGE, advisories, jars
from supply.packages import Installed, Missing, asked_for, canonical, graph, installed, locked, require


def package(folder: Path, name: str, *needs: str, files: str = "") -> Installed:
    """A package as pip installs it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {need}" for need in needs)]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    (info / "RECORD").write_text(files)
    return {name: installed([str(folder)])[name]}


def test_the_locks_have_all_that_the_image_is_asked_to_have_and_what_that_needs() -> None:
    pins = {one.key for one in locked(IMAGE)}
    roots = asked_for(IMAGE)
    assert {canonical(one.name) for one in roots} <= pins
    environment = {name: one for name, one in installed().items() if name in pins}
    assert set(graph(roots, environment)) == pins, "a pin that nothing asks for"


def test_a_package_that_several_stages_pin_is_named_once_by_the_first(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "web.txt").write_text("# Written.\nOne_Two==1.0 \\\n    --hash=sha256:00\n")
    (tmp_path / "requirements" / "cli.txt").write_text("one-two[extra]==1.0 ; python_version > '3'\nthree==2\n")
    found = [(one.key, one.version, one.stage) for one in locked(("web", "cli"), tmp_path)]
    assert found == [("one-two", "1.0", "web"), ("three", "2", "cli")]


def test_the_graph_follows_markers_and_the_extras_that_somebody_asks_for(tmp_path: Path) -> None:
    there = package(tmp_path, "top", "left[more]", "never; python_version < '3'", "unasked; extra == 'other'")
    there |= package(tmp_path, "left", "right; extra == 'more'", "away; extra == 'other'")
    for name in ("right", "never", "unasked", "away"):
        there |= package(tmp_path, name)
    assert graph([Requirement("top")], there) == {"top": {"left"}, "left": {"right"}, "right": set()}


def test_another_environment_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"\(nothing is there\)"):
        require(locked(("cli",)), {})


def archive(path: Path, **records: str) -> None:
    with zipfile.ZipFile(path, "w") as made:
        for artifact, group in records.items():
            text = f"# made\nartifactId={artifact}\ngroupId={group}\nversion=4.2.Final\n"
            made.writestr(f"META-INF/maven/{group}/{artifact}/pom.properties", text)


def test_a_java_library_is_named_by_its_own_record_and_not_by_that_of_what_was_packed_into_it(tmp_path: Path) -> None:
    archive(tmp_path / "buffer-4.2.Final.jar", packed="org.else", buffer="io.netty")
    archive(tmp_path / "shaded_2.13-1.0.jar", packed="org.else")
    there = package(tmp_path, "spark", files="buffer-4.2.Final.jar,,\nshaded_2.13-1.0.jar,,\nspark/__init__.py,,\n")
    found = [(one.group, one.artifact, one.version) for one in jars.jars(there["spark"])]
    assert found == [("io.netty", "buffer", "4.2.Final"), ("", "shaded_2.13", "1.0")]
    assert len({one.sha256 for one in jars.jars(there["spark"])}) == 2


def audited(*packages: dict[str, Any]) -> advisories.Answer:
    return advisories.read(json.dumps({"dependencies": list(packages), "fixes": []}), "")


CLEAN = {"name": "one", "version": "1.0", "vulns": []}
WEAK = {"name": "two", "version": "2.0", "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.1"]}]}
SKIPPED = {"name": "three", "skip_reason": "not found"}


def test_an_audit_ends_well_only_if_every_package_was_asked_about() -> None:
    assert audited(CLEAN).status == advisories.CLEAN
    assert audited(CLEAN, SKIPPED).status == advisories.NOT_ASKED
    assert "three" in audited(CLEAN, SKIPPED).lines[0]
    assert audited(SKIPPED).lines[0].startswith("nothing was audited")
    assert audited().status == advisories.NOT_ASKED


def test_a_weakness_is_told_with_the_version_that_has_it_no_more() -> None:
    answer = audited(CLEAN, WEAK, SKIPPED)
    assert answer.status == advisories.FOUND
    assert answer.lines[0] == "two 2.0: PYSEC-1, CVE-1; mended in 2.1" and "three" in answer.lines[1]


@pytest.mark.parametrize("output", ["", "Traceback", "{}"])
def test_advisories_that_cannot_be_reached_are_an_error(output: str) -> None:
    answer = advisories.read(output, "Traceback\nrequests.ConnectionError: refused\n")
    assert answer.status == advisories.NOT_ASKED
    assert answer.lines == (
        "the advisories could not be asked: requests.ConnectionError: refused",
        "nothing was audited",
    )


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        (supply_chain.licences, ["--wirte"], "takes nothing, or --write"),
        (supply_chain.sbom, ["--help"], "takes the file to write"),
        (supply_chain.sbom, ["/no/such/folder/bom.json"], "there is no folder /no/such/folder"),
    ],
)
def test_a_script_says_what_it_takes(command: Any, arguments: list[str], words: str) -> None:
    with pytest.raises(Problem, match=words):
        command(arguments)
