"""The pages start before Spark's packages are installed: nothing that the web process imports may need them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START = """
import sys
for name in ("pyarrow", "pyspark", "pandas"):
    sys.modules[name] = None
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "lakemirror_site.settings_test"
import django
django.setup()
from django.urls import get_resolver
from web.openapi import document
get_resolver().url_patterns
document()
"""


def test_the_web_process_needs_none_of_sparks_packages() -> None:
    done = subprocess.run([sys.executable, "-c", START], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
