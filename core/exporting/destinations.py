"""Where an export writes: places as URIs, and the names of what stands at a status path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from core.errors import Conflict, Invalid
from core.installations.places import inside

LONGEST_KEY = 1024
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_HINT = "Use s3://BUCKET/PATH"


def check_place(uri: str, field: str) -> str:
    """The place without trailing slashes. Raises Invalid for what is no `s3://bucket[/path]`."""
    scheme, separator, rest = uri.partition("://")
    bucket, _, path = rest.partition("/")
    if not separator or scheme not in ("s3", "s3a"):
        raise Invalid(f"'{uri[:200]}' is not an s3:// address", field=field, hint=_HINT)
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise Invalid(f"'{bucket[:80]}' is not a valid bucket name", field=field, hint=_HINT)
    path = path.rstrip("/")
    if len(path.encode()) > LONGEST_KEY - 100:
        raise Invalid(f"a path of {len(path.encode())} bytes  bytes leaves no room for keys", field=field)
    if any(ord(letter) < 32 or letter == "\x7f" for letter in path):
        raise Invalid("the path contains control characters", field=field, hint=_HINT)
    if any(part in (".", "..") for part in path.split("/")):
        raise Invalid("the path contains '.' or '..' as a part", field=field, hint=_HINT)
    return f"s3://{bucket}/{path}" if path else f"s3://{bucket}"


def check_beside(status_path: str, path: str, repository: str, branch: str) -> None:
    """Raises Invalid where status files would lie in the export path: who reads the export would find files that are
    in no commit."""
    folder = _folder_of_branch(status_path, repository, branch)
    if status_path and inside(folder, path):
        what = "the status path lies" if inside(status_path, path) else f"the branch's status files, at {folder}, lie"
        raise Invalid(
            f"{what} inside of the export path",
            field="exportStatusPath",
            hint="Choose a path beside it: readers of the export would find files that are in no commit",
        )


def holders_of(place: str) -> list[str]:
    """The places that hold this one, from its bucket on."""
    parts = place.split("/")
    return ["/".join(parts[:number]) for number in range(3, len(parts))]


def imported_from(path: str, address: str, key: bytes) -> Conflict:
    """What is said of a branch that holds objects of its own export path: to bring or remove a file there would destroy
    what commits refer to."""
    name = key.decode("utf-8", "backslashreplace")
    return Conflict(
        f"{address}, in the export path {path}, is an object of the repository: '{name}' was imported from there",
        field="exportPath",
        hint="Use another path: a file that is replaced or removed here may be the only copy that a commit has",
    )


def status_uri(status_path: str, repository: str, branch: str, commit: str) -> str:
    """`<status path>/<REPO>-<BRANCH>-<COMMIT>`; what a branch name may not leave in one name, `/` above all, is
    percent-encoded as UTF-8."""
    return f"{status_path.rstrip('/')}/{repository}-{quote(branch, safe='')}-{commit}"


@dataclass(frozen=True, slots=True)
class TimedNames:
    """What one run leaves besides: a status for programs, and the list of all objects."""

    status: str
    manifest: str


def timed_uris(status_path: str, repository: str, branch: str, at: datetime) -> TimedNames:
    """`_STATUS_<timestamp>.json` and `_MANIFEST_<timestamp>.json`: UTC, to the microsecond, ascending as text. Several
    exports may share a status path, so each branch's lie below `<REPO>/<BRANCH>/`."""
    stamp = f"{at:%Y%m%dT%H%M%S.%fZ}"
    folder = _folder_of_branch(status_path, repository, branch)
    return TimedNames(f"{folder}/_STATUS_{stamp}.json", f"{folder}/_MANIFEST_{stamp}.json")


def _folder_of_branch(status_path: str, repository: str, branch: str) -> str:
    return f"{status_path.rstrip('/')}/{repository}/{quote(branch, safe='')}"
