"""What would keep an export from working? Answers of stores and installations as checks, with what to do. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from core.errors import Denied, Invalid, LakeMirrorError, NotFound, Unauthenticated, Unreachable
from core.exporting.route import Route
from core.installations.preflight import Check, CheckOutcome, NotAsked, failing, not_known
from core.installations.preflight_stores import bucket_of, prefix_of
from core.text.phrases import count

DECIDING = frozenset(
    {"branch", "path", "path-apart", "path-bucket", "path-right:s3:ListBucket", "path-right:s3:PutObject"}
)
"""What has to be known, and good, for the first file to arrive."""

LIST = "s3:ListBucket"
WHOSE = "ARN-OF-THE-USER-OR-ROLE"
SHOWN = 3
_WORDS = {
    "s3:PutObject": ("write below", "Wrote an object to"),
    "s3:GetObject": ("read below", "Read an object back from"),
    "s3:DeleteObject": ("delete below", "Deleted an object from"),
    "s3:DeleteObjectVersion": ("delete versions below", "Deleted a version of an object from"),
    "s3:AbortMultipartUpload": ("start multipart uploads below", "Started and cancelled a multipart upload at"),
}


@dataclass(frozen=True, slots=True)
class Store:
    """Which store a bucket lies in, as far as the configuration knows. `key`: the access key's id, "" for none."""

    bucket: str
    where: str
    own: bool
    region: str
    key: str


# --- the branch -------------------------------------------------------------------------------------------------------


def check_branch(name: str, repository: str, head: str | LakeMirrorError) -> Check:
    """Is there something to export?"""
    if isinstance(head, LakeMirrorError):
        return not_known("branch", f"where '{name}' is", head) if head.retryable else failing("branch", head)
    return Check("branch", CheckOutcome.OK, f"'{name}' of '{repository}' exists, at {head[:8]}")


def check_markers(names: Sequence[str], looked: str | LakeMirrorError) -> Check:
    """Does the branch hold files that stand where markers of ours would? `looked`: what was looked through."""
    check_id = "marker-names"
    if isinstance(looked, LakeMirrorError):
        return not_known(check_id, "whether the branch has files named _lakefs_success", looked)
    if not names:
        return Check(check_id, CheckOutcome.OK, f"No file is named _lakefs_success among {looked}")
    listed = ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")
    message = f"The branch has {count(len(names), 'file')} named _lakefs_success: {listed}"
    fix = "Such a file is exported like any other, in place of the marker: rename it if readers wait for markers"
    return Check(check_id, CheckOutcome.WARNING, message, fix)


def check_patterns(nothing: Sequence[str], number: int, looked: str | LakeMirrorError) -> Check:
    """Do the expressions match something? `nothing`: those that do not."""
    check_id = "patterns"
    if isinstance(looked, Invalid):
        return failing(check_id, looked)
    if isinstance(looked, LakeMirrorError):
        return not_known(check_id, "what the expressions match", looked)
    if not number:
        return Check(check_id, CheckOutcome.OK, "There are no expressions: no directory gets a marker")
    if nothing:
        listed = ", ".join(f"'{pattern}'" for pattern in nothing[:SHOWN])
        fix = (
            r"Directories are matched with a trailing slash and no leading one, as in logs/day=01/; . is any character"
        )
        return Check(check_id, CheckOutcome.WARNING, f"In {looked}, {listed} matched nothing", fix)
    message = "the expression matches" if number == 1 else f"each of the {number} expressions matches"
    return Check(check_id, CheckOutcome.OK, f"In {looked}, {message} something")


# --- places -----------------------------------------------------------------------------------------------------------


def check_store(side: str, store: Store) -> Check:
    """Where does the configuration say that the bucket is?"""
    whose = f"the store configured for {store.bucket} in export_stores" if store.own else f"the store of {store.region}"
    message = f"{store.bucket} is at {store.where}, {whose}"
    by = f"the key {store.key}" if store.key else "the credentials of this machine"
    return Check(f"{side}-store", CheckOutcome.OK, f"{message}, with {by}")


def check_region(side: str, route: Route) -> Check:
    """Do files leave a region on their way to the bucket?"""
    check_id, way = f"{side}-region", route.sentence.rstrip(".")
    if route.crosses:
        return Check(check_id, CheckOutcome.WARNING, way, f"Choose a bucket in {route.region} to avoid it")
    if route.crosses is None:
        fix = f"Set export_stores.{route.bucket}.region in the configuration, so that it can be told"
        return Check(check_id, CheckOutcome.UNKNOWN, f"Whether {route.bucket} is in {route.region} is not known", fix)
    return Check(check_id, CheckOutcome.OK, way)


def check_bucket(side: str, store: Store, answer: object) -> Check:
    """Does a store answer, know our key, and have the bucket? `answer`: what came instead of a listing, if an error."""
    check_id = f"{side}-bucket"
    if isinstance(answer, NotFound):
        fix = f"Create the bucket, or configure its store: export_stores.{store.bucket} in the configuration"
        return Check(check_id, CheckOutcome.FAILED, f"There is no bucket {store.bucket} at {store.where}", fix)
    if isinstance(answer, Unauthenticated):
        fix = f"Set the key of {_field(store)} in the configuration, and restart"
        return Check(check_id, CheckOutcome.FAILED, f"{store.where} refuses the key: {answer.message}", fix)
    if isinstance(answer, Unreachable):
        fix = f"Make sure that this machine can reach {store.where}; set another address in {_field(store)}"
        return Check(check_id, CheckOutcome.FAILED, answer.message, fix)
    if isinstance(answer, Denied):
        return Check(check_id, CheckOutcome.WARNING, f"{store.bucket} exists, but can't be listed", answer.hint)
    if isinstance(answer, LakeMirrorError):
        return not_known(check_id, f"whether {store.bucket} exists", answer)
    return Check(check_id, CheckOutcome.OK, f"{store.bucket} exists, and the key is accepted")


def _field(store: Store) -> str:
    return f"export_stores.{store.bucket}" if store.own else f"stores.{store.region}"


def check_list(side: str, place: str, answer: object) -> Check:
    """May our key list there? A first run does nothing before it has looked what is there already."""
    check_id = f"{side}-right:{LIST}"
    if isinstance(answer, Denied):
        fix = "Add this statement to the bucket policy, or, without Principal, to the policy of the user or role"
        message = f"The key may not list {place}: {answer.message}"
        return Check(check_id, CheckOutcome.FAILED, message, fix, statement(LIST, place))
    if isinstance(answer, LakeMirrorError):
        return not_known(check_id, f"whether the key may list {place}", answer)
    return Check(check_id, CheckOutcome.OK, f"The key may list {place}")


def check_right(side: str, action: str, place: str, answer: LakeMirrorError | None, leftover: str = "") -> Check:
    """May our key do this? It was tried with an object of our own; `leftover`: its address, if it stayed."""
    check_id, (what, done) = f"{side}-right:{action}", _WORDS[action]
    if answer is None:
        return Check(check_id, CheckOutcome.OK, f"{done} {place}")
    stays = f". Remove {leftover}, which was left there" if leftover else ""
    if isinstance(answer, NotAsked) or answer.retryable:
        return not_known(check_id, f"whether the key may {what} {place}", answer, f"{answer.hint}{stays}".lstrip(". "))
    message = f"The key can't {what} {place}: {answer.message}"
    if not isinstance(answer, Denied):
        return Check(check_id, CheckOutcome.FAILED, message, f"{answer.hint or 'See the message of the store'}{stays}")
    fix = f"Add this statement to the bucket policy, or, without Principal, to the policy of the user or role{stays}"
    return Check(check_id, CheckOutcome.FAILED, message, fix, statement(action, place))


def statement(action: str, place: str) -> str:
    """The statement of a bucket's policy that allows an action at a place."""
    bucket, prefix = bucket_of(place), prefix_of(place)
    on = f"arn:aws:s3:::{bucket}" if action == LIST else f"arn:aws:s3:::{bucket}/{prefix}*"
    document = {"Effect": "Allow", "Principal": {"AWS": WHOSE}, "Action": [action], "Resource": [on]}
    return json.dumps(document, indent=2, ensure_ascii=False)


def check_content(place: str, answer: Collection[str] | LakeMirrorError, more: bool, *, ours: bool) -> Check:
    """What is there already? `ours`: this export has written there."""
    check_id = "path-content"
    if isinstance(answer, LakeMirrorError):
        return not_known(check_id, f"what is at {place}", answer)
    if not answer:
        return Check(check_id, CheckOutcome.OK, f"{place} is empty")
    seen = f"{count(len(answer), 'object')}{' or more' if more else ''}"
    if ours:
        return Check(check_id, CheckOutcome.OK, f"{seen} at {place}, which this export has written to before")
    fix = "They are kept, but a file of the branch replaces one with the same key: use an empty path to be safe"
    return Check(check_id, CheckOutcome.WARNING, f"{seen} at {place} already", fix)


def check_apart(side: str, place: str, error: LakeMirrorError | None) -> Check:
    """Is a place nobody else's?"""
    check_id = f"{side}-apart"
    if error is None:
        return Check(check_id, CheckOutcome.OK, f"{place} overlaps no repository, mirror or other export")
    return failing(check_id, error)
