"""What would keep a replication rule from working? Answers of stores as checks, with what to do. Pure."""

from __future__ import annotations

from core.errors import LakeMirrorError, NotFound
from core.exporting import preflight as of_stores
from core.exporting.preflight import Store, statement
from core.installations.preflight import Check, CheckOutcome, NotAsked, failing, not_known
from core.replicating.merging import Listing
from core.text.phrases import count

SOURCE = "source"
LIST, GET, PUT = "s3:ListBucket", "s3:GetObject", "s3:PutObject"


def target_side(number: int) -> str:
    """What the checks of a target are called by."""
    return f"target-{number}"


def deciding(targets: int) -> frozenset[str]:
    """What has to be known, and good, for the first object to arrive at each target."""
    own = {"name", SOURCE, f"{SOURCE}-bucket", f"{SOURCE}-right:{LIST}"}
    for number in range(1, targets + 1):
        side = target_side(number)
        what = ("apart", "bucket", "content", f"right:{LIST}", f"right:{PUT}")
        own |= {side, *(f"{side}-{name}" for name in what)}
    return frozenset(own)


def check_name(name: str, error: LakeMirrorError | None) -> Check:
    """May the rule be called so?"""
    return failed("name", error) if error else Check("name", CheckOutcome.OK, f"The rule is called {name}")


def check_address(side: str, uri: str, error: LakeMirrorError | None) -> Check:
    """Is it an address of S3, in a region that is known?"""
    return failed(side, error) if error else Check(side, CheckOutcome.OK, f"{uri} is an address of S3")


def check_bucket(side: str, store: Store, answer: object) -> Check:
    """Does the store of the region answer, know our key, and have the bucket?"""
    if isinstance(answer, NotFound):
        fix = "Create the bucket, or choose the region in whose store it is"
        return Check(f"{side}-bucket", CheckOutcome.FAILED, f"There is no bucket {store.bucket} at {store.where}", fix)
    return of_stores.check_bucket(side, store, answer)


def check_apart(side: str, uri: str, error: LakeMirrorError | None) -> Check:
    """Does nobody else write there?"""
    if error is None:
        text = f"{uri} overlaps no repository, mirror, export or other rule, and nothing leads back from it"
        return Check(f"{side}-apart", CheckOutcome.OK, text)
    return failed(f"{side}-apart", error)


def failed(check_id: str, error: LakeMirrorError) -> Check:
    """What keeps a rule from being stored; what nobody could find out is unknown."""
    if error.retryable or isinstance(error, NotAsked):
        return failing(check_id, error)
    text = error.message[:1].upper() + error.message[1:] if error.message.partition(" ")[0].isalpha() else error.message
    return Check(check_id, CheckOutcome.FAILED, text, error.hint)


def check_readable(uri: str, listing: Listing | LakeMirrorError, read: LakeMirrorError | None) -> Check:
    """May our key read an object of the source? `read`: what came instead of the first one's bytes."""
    check_id = f"{SOURCE}-right:{GET}"
    if isinstance(listing, LakeMirrorError):
        return not_known(check_id, f"whether the key may read objects of {uri}", listing)
    if not listing.items:
        return Check(check_id, CheckOutcome.OK, f"{uri} is empty: there is nothing to read yet")
    if read is None:
        return Check(check_id, CheckOutcome.OK, f"Read an object of {uri}")
    if read.retryable:
        return not_known(check_id, f"whether the key may read objects of {uri}", read)
    fix = "Add this statement to the bucket policy, or, without Principal, to the policy of the user or role"
    return Check(check_id, CheckOutcome.FAILED, f"The key can't read {uri}: {read.message}", fix, statement(GET, uri))


def check_content(side: str, uri: str, listing: Listing | LakeMirrorError, *, overwrite: bool) -> Check:
    """Is a target empty? `overwrite`: it need not be."""
    check_id = f"{side}-content"
    if isinstance(listing, LakeMirrorError):
        return not_known(check_id, f"what is at {uri}", listing)
    if not listing.items:
        return Check(check_id, CheckOutcome.OK, f"{uri} is empty")
    seen = f"{count(len(listing.items), 'object')}{' or more' if listing.more else ''}"
    if overwrite:
        fix = "They are kept, but an object of the source replaces one with the same key that differs"
        return Check(check_id, CheckOutcome.WARNING, f"{seen} at {uri} already", fix)
    fix = "What differs from the source would be replaced there: choose an empty place, or allow that"
    return Check(check_id, CheckOutcome.FAILED, f"{uri} holds {seen} already", fix)
