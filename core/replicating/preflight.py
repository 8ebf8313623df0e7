"""What would keep a replication rule from working? Answers of stores as checks, with what to do. Pure."""

from __future__ import annotations

from dataclasses import replace

from core.errors import LakeMirrorError, NotFound
from core.exporting import preflight as of_stores
from core.exporting.preflight import Store, statement
from core.installations import preflight_stores as stores
from core.installations.preflight import Check, CheckOutcome, NotAsked, failing, not_known
from core.replicating.eligible import is_own
from core.replicating.merging import Listing
from core.replicating.version_merging import VersionPage
from core.text.phrases import count

SOURCE = "source"
LIST, GET, PUT = "s3:ListBucket", "s3:GetObject", "s3:PutObject"
DELETE = "s3:DeleteObject"
PURGE = "s3:DeleteObjectVersion"


def target_side(number: int) -> str:
    """What the checks of a target are called by."""
    return f"target-{number}"


def deciding(targets: int, *, versions: bool = False, markers: bool = False, purges: bool = False) -> frozenset[str]:
    """What has to be known, and good, for the first object to arrive at each target; `versions`: with all versions;
    `markers`, `purges`: for deletions, or those of versions, to be followed there."""
    kept = ("versioning",) if versions else ()
    own = {"name", SOURCE, f"{SOURCE}-bucket", f"{SOURCE}-right:{LIST}", *(f"{SOURCE}-{name}" for name in kept)}
    for number in range(1, targets + 1):
        side = target_side(number)
        what = ("apart", "bucket", "content", f"right:{LIST}", f"right:{PUT}", *kept)
        own |= {side, *(f"{side}-{name}" for name in what)}
        own |= {f"{side}-right:{DELETE}"} if markers else set()
        own |= {f"{side}-right:{PURGE}"} if purges else set()
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


def check_versioning(side: str, bucket: str, status: str | LakeMirrorError) -> Check:
    """Does a bucket keep versions? `status`: Enabled, Suspended, or "" where it never did."""
    check_id = f"{side}-versioning"
    if isinstance(status, LakeMirrorError):
        return not_known(check_id, f"whether the bucket {bucket} keeps versions", status)
    if status == "Enabled":
        return Check(check_id, CheckOutcome.OK, f"The bucket {bucket} keeps versions")
    fix = "Enable versioning of the bucket, or copy the latest objects alone"
    return Check(check_id, CheckOutcome.FAILED, f"Versioning of the bucket {bucket} is {status.lower() or 'off'}", fix)


def check_clock(side: str, region: str, ahead: float | LakeMirrorError | None, *, newest: bool) -> Check:
    """Is a store's clock right? `newest`: the newer of two objects stays, by the clocks of both sides."""
    check = stores.check_clock(f"{side}-clock", f"the store of {region}", ahead, signed=True)
    if not newest or check.state not in (CheckOutcome.WARNING, CheckOutcome.FAILED) or not isinstance(ahead, float):
        return check
    wins = "what is written there would win" if ahead > 0 else "what is written there would lose"
    return replace(check, fix=f"{check.fix}: until then {wins} over newer objects of the other side")


def check_exact(side: str, uri: str, exact: bool | LakeMirrorError, why: str = "", left: str = "") -> Check:
    """Do versions keep their ids at a target? Either is in order."""
    check_id = f"{side}-exact"
    if isinstance(exact, LakeMirrorError):
        return not_known(check_id, f"whether {uri} takes versions under their ids", exact)
    stays = f"Remove {left}, which was left there" if left else ""
    if exact:
        return Check(check_id, CheckOutcome.OK, f"Versions keep their ids and times at {uri}", stays)
    return Check(check_id, CheckOutcome.OK, f"Versions get ids of their own at {uri}: {why}", stays)


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


def check_no_versions(side: str, uri: str, page: VersionPage | LakeMirrorError, *, overwrite: bool) -> Check:
    """Is a target empty, old versions included?"""
    if isinstance(page, LakeMirrorError):
        return not_known(f"{side}-content", f"what is at {uri}", page)
    foreign = [key for key, _ in page.entries if not is_own(key)]
    if not foreign:
        return Check(f"{side}-content", CheckOutcome.OK, f"{uri} is empty, and has no old versions")
    more = " or more" if page.position else ""
    seen = f"{count(len(foreign), 'version')}{more} at {uri} already"
    if overwrite:
        return Check(f"{side}-content", CheckOutcome.WARNING, seen, "They are kept; the source's come on top of them")
    fix = "The source's would come on top of them: choose a place without old versions, or allow that"
    return Check(f"{side}-content", CheckOutcome.FAILED, seen, fix)


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
