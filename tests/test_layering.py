"""One SDK, one file; frameworks stay in their place. Which package imports which: import-linter, pyproject.toml."""

from __future__ import annotations

import ast
import itertools
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
APPS = (
    *("web", "audit", "jobs", "rbac", "installations", "mirrors", "mirroring", "exports", "replication"),
    *("notifications", "console"),
)
PURE = ("graveler", "core", "adapters", "spark_jobs", "deployment", "sandbox")
OURS = (*PURE, "db", *APPS, "lakemirror_site", "lakemirror")

NOT_FOR = {
    "django": PURE,
    "rest_framework": PURE,
    "pyspark": ("graveler", "core", "sandbox", *APPS),
}
ONE_FILE = {
    "boto3": {"adapters/s3/store.py"},
    "botocore": {"adapters/s3/store.py"},
    "lakefs_sdk": {"adapters/lakefs.py"},
    "requests": {"lakemirror/api.py"},
    "authlib": {"rbac/signin/openid.py"},
    "cryptography": {"adapters/sealing.py"},
    "apprise": {"adapters/apprise/child.py"},
    "smtplib": {"adapters/mail.py"},
    "markdown_it": {"console/help/markdown.py"},
}
STDLIB_ONLY = "core"


def modules() -> list[Path]:
    return sorted(itertools.chain.from_iterable((ROOT / package).rglob("*.py") for package in OURS))


def imported(path: Path) -> set[str]:
    """Full names of what a module imports, also inside of functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def test_the_command_needs_only_what_is_installed_with_it() -> None:
    for path in (ROOT / "lakemirror").rglob("*.py"):
        tops = {name.split(".")[0] for name in imported(path)}
        assert tops <= {*sys.stdlib_module_names, "lakemirror", "click", "rich", "requests", "urllib3", "yaml"}, path


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_frameworks_and_sdks_stay_in_their_place(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    for name in imported(path):
        top = name.split(".")[0]
        assert package not in NOT_FOR.get(top, ()), f"{name_of(path)} imports {name}"
        if top in ONE_FILE and package != "sandbox":
            assert name_of(path) in ONE_FILE[top], f"{name_of(path)} imports {name}"


def test_the_core_needs_nothing_but_the_standard_library_and_the_format() -> None:
    for path in (ROOT / STDLIB_ONLY).rglob("*.py"):
        tops = {name.split(".")[0] for name in imported(path)}
        assert tops <= {*sys.stdlib_module_names, "core", "graveler", "__future__"}, name_of(path)
