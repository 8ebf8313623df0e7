"""Names: which ones lakeFS accepts, and the ids that it gives to objects."""

from __future__ import annotations

import itertools
import os
import re
import threading
import time

from sandbox.lakefs.errors import invalid

REPOSITORY = re.compile(r"[a-z0-9][a-z0-9-]{2,62}")
NAMESPACE = re.compile(r"(s3|gs|https?|mem|local|transient)://.*")
BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
TAG = re.compile(r"[^\s~^:?*\[@\\]+")
OBJECTS_IN_A_PARTITION = 500
ALPHABET = "0123456789abcdefghijklmnopqrstuv"


def check_branch(name: str) -> None:
    """Raises a 400 unless the name is a branch's."""
    if not BRANCH.fullmatch(name):
        raise invalid(
            "argument branch: branch id: invalid value: validation error: branch id must consist of letters, digits, "
            "underscores and dashes, and cannot start with a dash"
        )


def check_tag(name: str) -> None:
    """Raises a 400 unless the name is a tag's."""
    if not TAG.fullmatch(name):
        raise invalid("argument tagID: tag id: invalid value: validation error")


def check_repository(name: str, namespace: str) -> None:
    """Raises a 400 unless lakeFS would take this name and storage namespace."""
    schema = "request body has an error: doesn't match schema #/components/schemas/RepositoryCreation: Error at "
    for field, value, pattern in (("name", name, REPOSITORY), ("storage_namespace", namespace, NAMESPACE)):
        if not pattern.fullmatch(value):
            raise invalid(f'{schema}"/{field}": string doesn\'t match the regular expression "^{pattern.pattern}$"')


class AddressBook:
    """Gives relative addresses `data/<partition>/<id>`. As with lakeFS, a partition holds many objects, ids ascend
    and later partitions sort first."""

    def __init__(self) -> None:
        self._tail = int.from_bytes(os.urandom(5), "big")
        self._count = itertools.count(1)
        self._lock = threading.Lock()
        self._partition = ""

    def next(self) -> str:
        """A fresh address."""
        with self._lock:
            number = next(self._count)
            if number % OBJECTS_IN_A_PARTITION == 1:
                self._partition = self._id(0xFFFFFFFF - int(time.time()), number)
            return f"data/{self._partition}/{self._id(int(time.time()), number)}"

    def _id(self, seconds: int, number: int) -> str:
        value = (seconds << 64 | self._tail << 24 | number & 0xFFFFFF) << 4
        return "".join(ALPHABET[value >> shift & 31] for shift in range(95, -1, -5))
