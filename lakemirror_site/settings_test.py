"""Settings of the tests: a throw-away database, quick password hashes, no manifest of static files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

# Whatever the developer's shell has set for a running LakeMirror, tests must not touch it.
os.environ["LAKEMIRROR_VAR"] = os.environ.get("LAKEMIRROR_TEST_VAR") or tempfile.mkdtemp(prefix="lakemirror-test-")

from .settings import *

SECRET_KEY = "a key that only tests use"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# A file and not memory: threads and processes of one test open the same database.
DATABASES["default"]["TEST"] = {"NAME": Path(os.environ["LAKEMIRROR_VAR"]) / "test.sqlite3"}
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "tests"}}
