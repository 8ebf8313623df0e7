"""The operators' guide knows whatever the pages, the API and the preflight can say, and names only what exists."""

from __future__ import annotations

import ast
import functools
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any

import click
import pytest
from django.core.management import get_commands
from django.urls import Resolver404, resolve

from core.exporting import explain as export_words
from core.exporting import failure_reasons
from core.installations.preflight import Check
from core.mirroring.explain import blocker_text, branch, mirror, standing
from core.mirroring.object_check import Reason
from core.mirroring.promotion import Why
from core.mirroring.states import Stage, State
from core.replication.causes import Cause
from lakemirror.app import lakemirror
from mirrors.models import MirrorDuty
from mirrors.preflight.checks import preflight
from mirrors.preflight.questions import Plan
from rbac.models import User
from tests.browser.pictures import LARGEST, PICTURES
from tests.mirrors.harness import Deployment
from web.errors import STATUSES

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guide"
TROUBLE = (GUIDE / "troubleshooting.md").read_text()
TASKS = (GUIDE / "tasks.md").read_text()
PAGES = sorted(GUIDE.glob("*.md"))


def rows(title: str, column: int = 1) -> str:
    """The cells of a column of a section's table."""
    section = TROUBLE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return "\n".join(line.split("|")[column] for line in section.splitlines() if line.startswith("| "))


def has(title: str, what: str) -> bool:
    return re.search(rf"(^|[ `]){re.escape(what)}([ `]|$)", rows(title), re.MULTILINE) is not None


# --- what may be said -------------------------------------------------------------------------------------------------


def codes_of(module: Any, call: str, at: int) -> set[str]:
    """The codes that a module gives as they stand in it; those that it puts together are named below."""
    tree = ast.parse(Path(module.__file__).read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == call]
    given = [node.args[at] for node in calls if len(node.args) > at]
    return {str(arg.value) for arg in given if isinstance(arg, ast.Constant)}


REASONS = {
    *(code for module in (mirror, standing, branch) for code in codes_of(module, "Verdict", 1)),
    *(f"{kind}_failed" for kind in MirrorDuty.values),
    *(reason.replace("-", "_") for reason in standing._STOPPED_ADVICE),
    "damaged",
    "stopped",
}
LACKS = {
    *codes_of(blocker_text, "Lack", 0),
    *codes_of(blocker_text, "_of_record", 2),
    *(f"object_{reason.replace('-', '_')}" for reason in blocker_text._REASONS),
    *(f"{kind}_{reason}" for kind in ("range", "metarange") for reason in ("missing", "damaged")),
}


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_row(state: State) -> None:
    assert has("States", state.word)


@pytest.mark.parametrize("stage", Stage)
def test_every_step_of_a_commit_has_a_row(stage: Stage) -> None:
    assert has("Steps of a commit", stage.word)


def test_every_state_of_an_export_has_a_row() -> None:
    words = codes_of(export_words, "Told", 1) | {"Retrying", "Exporting"}
    assert len(words) > 6
    assert [word for word in words if not has("States of an export", word)] == []


@pytest.mark.parametrize("reason", failure_reasons.Reason)
def test_every_reason_of_a_file_that_failed_has_a_row_with_its_words(reason: failure_reasons.Reason) -> None:
    title = "Files that an export could not copy"
    assert has(title, reason)
    assert failure_reasons.reason_words(reason) in rows(title, 2)


@pytest.mark.parametrize("code", sorted(REASONS))
def test_every_reason_has_a_row(code: str) -> None:
    assert has("Reasons", code)


@pytest.mark.parametrize("code", sorted(LACKS))
def test_whatever_a_commit_lacks_has_a_row(code: str) -> None:
    assert has("What a commit lacks", code)


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_of_replication_has_a_row(cause: Cause) -> None:
    assert has("Why replication has not brought it", cause)


def test_every_reason_of_a_blocker_is_told() -> None:
    told = TROUBLE.split("## What a commit lacks")[1].split("| code |")[0]
    assert [reason for reason in (*Reason, "source-corrupt", "tampered-record") if f"`{reason}`" not in told] == []


def test_every_move_of_a_branch_is_told() -> None:
    told = TROUBLE.split("## What became of a branch")[1].split("\n## ")[0]
    assert [why for why in Why if f"`{why}`" not in told] == []


def test_every_status_of_an_error_has_a_row() -> None:
    given = {status for _, status in STATUSES} | {HTTPStatus.FORBIDDEN, HTTPStatus.INTERNAL_SERVER_ERROR}
    assert [status for status in given if not has("Answers of the API", str(status.value))] == []


@pytest.mark.django_db
def test_every_check_before_creation_has_a_row(lm: Deployment, owner: User) -> None:
    found = preflight(actor=owner, plan=Plan("lake", "us-east-1", "other-eu", "eu-west-1", "s3://dst/other"))
    assert len(found.checks) > 20
    assert [check.id for check in found.checks if not has("Checks before creation", shown(check))] == []


SAID = {
    **dict.fromkeys(("Overview and Jobs", "Words of lakeFS and the stores", "It does not start", "No certificate"), 1),
    "Where a commit can be read": 1,
    "Why an export failed": 1,
    **dict.fromkeys(("Reasons", "What a commit lacks", "Answers of the API"), 2),
}
"""Sections that quote messages, and in which column."""
SPOKEN_BY = (
    "core",
    "adapters",
    "spark_jobs",
    "deployment",
    "db",
    "web",
    "audit",
    "jobs",
    "rbac",
    "installations",
    "mirrors",
    "mirroring",
    "exports",
    "replication",
    "notifications",
    "console",
    "lakemirror_site",
    "templates",
    "static",
    "scripts/launcher",
)


@functools.cache
def words_of_the_code() -> str:
    """All that it may say, with strings that go on in the next line joined."""
    paths = (path for folder in SPOKEN_BY for path in (ROOT / folder).rglob("*"))
    texts = [path.read_text() for path in paths if path.suffix in (".py", ".html", ".js")]
    return re.sub(r"\"\s*\n\s*f?\"", "", "\n".join(texts))


@pytest.mark.parametrize("title", SAID)
def test_what_is_quoted_is_really_said(title: str) -> None:
    cells = rows(title, SAID[title]).splitlines()[1:]
    parts = [part.strip(" .?,`") for cell in cells for part in re.split(r"…|; |\(.*?\)|: |\. |Or", cell)]
    quoted = [part for part in parts if len(part) > 6]
    assert len(quoted) > 6
    assert [part for part in quoted if part.lower() not in words_of_the_code().lower()] == []


def shown(check: Check) -> str:
    """An id as the page has it: the rights share two rows."""
    return re.sub(r":.*", ":…", check.id)


# --- what is told exists ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Those that a page's headings get."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_button_and_part_of_a_page_exists() -> None:
    named = {name for line in TASKS.splitlines() if "Page" in line for name in re.findall(r"\*([^*|]+)\*", line)}
    assert len(named) > 12
    code, states = words_of_the_code(), {state.word for state in State}
    assert [name for name in sorted(named - states) if f"{name}<" not in code and f'"{name}"' not in code] == []


def test_pictures_are_shown_small_and_those_that_the_script_takes() -> None:
    there = {path.stem: path.stat().st_size for path in (ROOT / "docs/images").iterdir()}
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    shown = {name for page in pages for name in re.findall(r"images/([\w-]+)\.png", page.read_text())}
    assert set(there) == shown == {picture.name for picture in PICTURES}
    assert max(there.values()) <= LARGEST


def addresses() -> set[str]:
    """Those that the tasks ask the API for, with something in place of what is to be filled in."""
    bases = {"$MIRROR": "/service/replication/v1/repositories/lake/mirrors/lake-eu", "$V1": "/service/replication/v1"}
    bases["$EXPORT"] = "/api/v1/repositories/lake/branches/main"
    found = re.findall(r"(\$MIRROR|\$V1|\$EXPORT)(/[^\s\"`?)]*)?", TASKS)
    return {bases[base] + re.sub(r"<[^>]*>", "1", path).rstrip(",") for base, path in found}


@pytest.mark.parametrize("address", sorted(addresses() - {"/service/replication/v1"}))
def test_every_address_of_the_api_exists(address: str) -> None:
    try:
        resolve(address)
    except Resolver404:
        pytest.fail(f"there is no {address}")


def test_every_command_and_option_exists() -> None:
    for kind, name, rest in re.findall(r"scripts/lakemirror (mirror|export) (\w+)([^`\n]*)", TASKS):
        group = lakemirror.commands[kind]
        assert isinstance(group, click.Group)
        known = {option for one in group.commands[name].params for option in one.opts}
        assert set(re.findall(r"(--[\w-]+)", rest)) <= known, name
    told = re.findall(r"(?:scripts/manage|manage\.py) ([a-z_]+)", TASKS + TROUBLE)
    assert set(told) <= set(get_commands()) and len(told) > 8
