"""What would keep a mirror from working? Each question's answer as a check: its state, a sentence, and the fix. Pure.

The answers were asked for elsewhere. One that could not be had is *unknown*, never ok.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.errors import (
    Denied,
    Invalid,
    LakeMirrorError,
    NotFound,
    RemoteFailure,
    Throttled,
    Unauthenticated,
    Unreachable,
    Unreadable,
)
from core.mirroring.branch_selection import Selection, check_selection
from core.text.phrases import count
from core.types import Commit, RepositoryInfo, ServerInfo

OLDEST = (1, 10)
"""The first lakeFS that takes commit records."""
TRIED = (1, 84)
"""The lakeFS that all of this was tried with."""


USEFUL = frozenset({"retention:GetGarbageCollectionRules"})
"""Rights without which a mirror works all the same, and less is known of it."""


class CheckOutcome(StrEnum):
    """What a check came to. Only `failed` says that something has to be done."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One question about what is planned. `fix` says what to do; it is empty where nothing has to be done. `policy`: a
    statement of JSON that does it, to be copied."""

    id: str
    state: CheckOutcome
    message: str
    fix: str = ""
    policy: str = ""


class NotAsked(LakeMirrorError):
    """The question needs the answer to another one, which isn't there."""


DECIDING = frozenset(
    {
        "source-reachable",
        "source-credentials",
        "source-repository",
        "branches",
        "destination-reachable",
        "destination-credentials",
        "name",
        "namespace",
        "namespace-bucket",
    }
)
"""What has to be known, and good, for a mirror to be made at all and to get its first object."""


def passed(checks: Collection[Check], deciding: Collection[str] = DECIDING) -> bool:
    """Nothing failed, and what decides is known. Nothing looked at is no pass."""
    decided = {check.id for check in checks if check.state in (CheckOutcome.OK, CheckOutcome.WARNING)}
    return decided >= set(deciding) and not any(check.state is CheckOutcome.FAILED for check in checks)


def failing(check_id: str, error: LakeMirrorError) -> Check:
    """What an error means that nobody has to look at more closely: only definite ones are failures."""
    definite = isinstance(error, (Invalid, NotFound, Unreadable)) or bool(error.field)
    return Check(
        check_id, CheckOutcome.FAILED if definite else CheckOutcome.UNKNOWN, _sentence(error.message), error.hint
    )


def _sentence(text: str) -> str:
    """With a capital, unless it begins with something that has to stay as it is, like an address."""
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() else text


# --- installations ----------------------------------------------------------------------------------------------------


def check_reachable(side: str, region: str, answer: ServerInfo | LakeMirrorError) -> Check:
    """Does the lakeFS of a region answer at all?"""
    check_id = f"{side}-reachable"
    if isinstance(answer, Throttled):
        return Check(check_id, CheckOutcome.UNKNOWN, f"The lakeFS of {region} is limiting requests", "Try again later")
    if isinstance(answer, (Unreachable, RemoteFailure)):
        fix = f"Make sure that the lakeFS of {region} is running and that this machine can reach its configured address"
        return Check(check_id, CheckOutcome.FAILED, answer.message, fix)
    if isinstance(answer, (Invalid, NotAsked, Unreadable)):
        return failing(check_id, answer)
    return Check(check_id, CheckOutcome.OK, f"The lakeFS of {region} is reachable")


def check_worker(region: str, deployment: str, silence: str) -> Check:
    """Is there a LakeMirror that would do the work in a destination's region? `deployment` serves it, "" if none was
    ever heard of; `silence` is how long it has been silent, "" if it was heard of lately."""
    if deployment and not silence:
        return Check("destination-worker", CheckOutcome.OK, f"The deployment {deployment} serves {region}")
    if deployment:
        message = f"The deployment {deployment}, which serves {region}, has not reported for {silence}"
        return Check("destination-worker", CheckOutcome.WARNING, message, "Start it, or find out why it is not running")
    message = f"No deployment that serves {region} has ever reported: the mirror would wait for one"
    fix = (
        f"Start a LakeMirror on this database with 'region: {region}', or with {region} among its serve_regions."
        " Deployments of the previous version don't report: if one of those runs there, continue"
    )
    return Check("destination-worker", CheckOutcome.WARNING, message, fix)


def check_credentials(side: str, region: str, answer: ServerInfo | LakeMirrorError) -> Check:
    """Does it let our key in?"""
    check_id = f"{side}-credentials"
    if isinstance(answer, Unauthenticated):
        return Check(check_id, CheckOutcome.FAILED, f"The lakeFS of {region} refuses the key", answer.hint)
    if isinstance(answer, (ServerInfo, Denied, NotFound)):
        return Check(check_id, CheckOutcome.OK, f"The lakeFS of {region} accepts the key")
    return not_known(check_id, f"whether the lakeFS of {region} accepts the key", answer)


def check_version(side: str, region: str, answer: ServerInfo | LakeMirrorError) -> Check:
    """Is it a lakeFS that a mirror can live with?"""
    check_id = f"{side}-version"
    if isinstance(answer, LakeMirrorError):
        return not_known(check_id, f"the version of the lakeFS of {region}", answer)
    version_text, version = answer.version or "no version", _numbers(answer.version)
    if version is None:
        return Check(check_id, CheckOutcome.UNKNOWN, f"The lakeFS of {region} reports {version_text}")
    if version < OLDEST:
        fix = f"Upgrade it to {_dotted(OLDEST)} or later"
        return Check(
            check_id,
            CheckOutcome.FAILED,
            f"The lakeFS of {region}, {version_text}, does not accept commit records",
            fix,
        )
    if version < TRIED or version[0] > TRIED[0]:
        fix = f"LakeMirror is tested with {_dotted(TRIED)}: try a small repository first"
        return Check(
            check_id, CheckOutcome.WARNING, f"LakeMirror is not tested with {version_text}, the lakeFS of {region}", fix
        )
    return Check(check_id, CheckOutcome.OK, f"The lakeFS of {region} is {version_text}")


def _numbers(version: str) -> tuple[int, int] | None:
    major, _, rest = version.removeprefix("v").partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def check_right(side: str, action: str, arn: str, answer: object) -> Check:
    """May our key do this there? lakeFS asks for the right before it looks: "not there" is a yes."""
    check_id = f"{side}-right:{action}"
    if isinstance(answer, Denied):
        fix = f"Grant the key's user {action} on {arn}, as the policy ReplicationPolicy does"
        state = CheckOutcome.WARNING if action in USEFUL else CheckOutcome.FAILED
        return Check(check_id, state, f"The key may not {action} on {arn}", fix)
    doubtful = (Unauthenticated, Unreachable, Throttled, RemoteFailure, NotAsked)
    if isinstance(answer, doubtful):
        return not_known(check_id, f"whether the key may {action} on {arn}", answer)
    return Check(check_id, CheckOutcome.OK, f"The key may {action} on {arn}")


def untried(side: str, action: str, arn: str, why: str, *, needed: bool) -> Check:
    """A right that can't be tried without changing something, or that nothing here is in need of."""
    fix = f"Make sure that the key's user has {action} on {arn}, as in the policy ReplicationPolicy"
    fix = fix if needed else "Nothing has to be done; the policy ReplicationPolicy grants it"
    return Check(f"{side}-right:{action}", CheckOutcome.UNKNOWN, f"{action} was not tested: {why}", fix)


# --- the source repository --------------------------------------------------------------------------------------------


def check_repository(
    name: str, region: str, repository: RepositoryInfo | LakeMirrorError, head: Commit | LakeMirrorError
) -> Check:
    """Is there something to mirror? `head` is that of the default branch."""
    check_id = "source-repository"
    if isinstance(repository, NotFound):
        fix = "Check the name of the repository and its region"
        return Check(check_id, CheckOutcome.FAILED, f"There is no repository '{name}' in {region}", fix)
    if isinstance(repository, LakeMirrorError):
        return not_known(check_id, f"whether '{name}' is in {region}", repository)
    if isinstance(head, NotFound):
        fix = "Make a commit first"
        return Check(check_id, CheckOutcome.FAILED, f"'{name}' has no commits on {repository.default_branch}", fix)
    if isinstance(head, LakeMirrorError):
        return not_known(check_id, f"whether '{name}' has commits", head)
    if not head.metarange_id and not head.parents:
        message = f"'{name}' has only its first, empty commit on {repository.default_branch}"
        return Check(check_id, CheckOutcome.WARNING, message, "Continue if data is still to come")
    return Check(check_id, CheckOutcome.OK, f"'{name}' exists, and {repository.default_branch} is at {head.id[:8]}")


def check_branches(
    repository: RepositoryInfo | LakeMirrorError,
    include: Sequence[str],
    exclude: Sequence[str],
    branches: Collection[str] | LakeMirrorError,
) -> Check:
    """Do the globs say what somebody may have meant?"""
    if isinstance(repository, LakeMirrorError) or isinstance(branches, LakeMirrorError):
        broken = repository if isinstance(repository, LakeMirrorError) else branches
        assert isinstance(broken, LakeMirrorError)
        return not_known("branches", "the branches of the source", broken)
    selection = Selection(repository.default_branch, tuple(include), tuple(exclude))
    try:
        check_selection(selection)
    except Invalid as error:
        return Check("branches", CheckOutcome.FAILED, error.message, error.hint or "Remove it")
    chosen = sum(branch in selection for branch in branches)
    message = f"{chosen} of {count(len(branches), 'branch', 'branches')} of the source would be mirrored"
    if warnings := selection.warnings(branches):
        return Check("branches", CheckOutcome.WARNING, f"{message}; {'; '.join(warnings)}", "Check the globs")
    return Check("branches", CheckOutcome.OK, message)


# --- what isn't known -------------------------------------------------------------------------------------------------


def not_known(check_id: str, what: str, error: LakeMirrorError, fix: str = "") -> Check:
    """A question without an answer."""
    return Check(check_id, CheckOutcome.UNKNOWN, f"Could not check {what}: {error.message}", fix or error.hint)
