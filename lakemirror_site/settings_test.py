"""Settings of the tests: a throw-away folder and database, quick password hashes, no manifest of static files."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

# Whatever the developer's shell has set for a running LakeMirror, tests must not touch it. Processes that a test
# starts share its folder; who made the folder removes it.
if "LAKEMIRROR_TEST_VAR" not in os.environ:
    os.environ["LAKEMIRROR_TEST_VAR"] = tempfile.mkdtemp(prefix="lakemirror-test-")
    atexit.register(shutil.rmtree, os.environ["LAKEMIRROR_TEST_VAR"], ignore_errors=True)
os.environ["LAKEMIRROR_VAR"] = os.environ["LAKEMIRROR_TEST_VAR"]
os.environ.pop("LAKEMIRROR_CONFIG", None)
os.environ["REPLICATION_AUTH_AUTHENTICATORS"] = "keys"  # no lakeFS is asked but where a test is about that

from .settings import *

SECRET_KEY = "a key that only tests use"
INSTALLATIONS_SECONDS = float("inf")  # they are read when a test says so
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if "sqlite3" in DATABASES["default"]["ENGINE"]:
    # A file and not memory: threads and processes of one test open the same database.
    DATABASES["default"]["TEST"] = {"NAME": VAR_DIR / "test.sqlite3"}
    # Nobody needs it after a power cut.
    DATABASES["default"]["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "tests"}}
