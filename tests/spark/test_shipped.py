"""What executors get is whole: every module of the archive is imported where there is no checkout and no Django."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from spark_jobs.session import code_archive

IMPORT_ALL = """
import importlib, sys, zipfile
archive = sys.argv[1]
sys.path.insert(0, archive)
for name in ("django", "rest_framework", "django_q"):
    sys.modules[name] = None
for name in sorted(zipfile.ZipFile(archive).namelist()):
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if not module.endswith("__main__"):
        found = importlib.import_module(module)
        assert found.__file__.startswith(archive), found.__file__
"""


def test_every_module_that_is_shipped_imports_without_the_checkout(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    archive.write_bytes(code_archive())
    command = [sys.executable, "-I", "-c", IMPORT_ALL, str(archive)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_packages_are_shipped_with_all_that_lies_in_them(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    archive.write_bytes(code_archive())
    names = zipfile.ZipFile(archive).namelist()
    folders = {str(Path(name).parent) for name in names}
    assert {f"{folder}/__init__.py" for folder in folders} <= set(names)
