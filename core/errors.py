"""Errors that carry a decision: may the caller try again, and what is the user told?

Only `web/errors.py` knows which HTTP status each class becomes.
"""

from __future__ import annotations


class LakeMirrorError(Exception):
    """Base of every expected failure. `retryable` says whether the same call may succeed later; `field` names what the
    caller has to change, if anything. `permanent`: a code for what somebody has to change first, "" where waiting or
    another look may be enough. `store_code`: the word of an object store that refused something."""

    retryable = False
    permanent = ""
    store_code = ""

    def __init__(self, message: str, *, field: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class Invalid(LakeMirrorError):
    """The caller sent something that can't be accepted."""

    permanent = "not_accepted"


class Unauthenticated(LakeMirrorError):
    """No credentials, or wrong ones."""

    permanent = "key_refused"


class Denied(LakeMirrorError):
    """Known caller without the right; names the missing action and the resource's ARN."""

    permanent = "permission_denied"

    def __init__(self, message: str, *, action: str = "", arn: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.action = action
        self.arn = arn


class Archived(Denied):
    """A store has the object in an archive, and gives it to nobody until it is restored there."""

    permanent = ""


class NotFound(LakeMirrorError):
    """A definite 'not there' from a reachable place (never a time-out, never a 403)."""


class NoBucket(NotFound):
    """There is no such bucket: nothing in it will ever arrive."""

    permanent = "no_such_bucket"


class Conflict(LakeMirrorError):
    """The name, namespace or state is taken by something else."""


class Stale(LakeMirrorError):
    """What was to be changed is not as the caller saw it: somebody else has changed it."""


class Unreachable(LakeMirrorError):
    """Nothing answered, in time or at all."""

    retryable = True


class NotSent(Unreachable):
    """There was no connection: whatever was asked for, the other side does not know of it."""


class Throttled(LakeMirrorError):
    """429 or SlowDown. `retry_after` in seconds, 0 if the server did not say."""

    retryable = True

    def __init__(self, message: str, *, retry_after: float = 0.0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class RemoteFailure(LakeMirrorError):
    """The other side answered 5xx."""

    retryable = True


class Full(RemoteFailure):
    """A store has no room, or none for us."""


class Unversioned(LakeMirrorError):
    """A bucket keeps no versions, or none any more: what is there would be lost."""


class NoData(LakeMirrorError):
    """lakeFS's 410: the metadata of what was asked for has not arrived."""

    retryable = True


class PartialFailure(LakeMirrorError):
    """Some of what one round was to do could not be done this time; the rest was. `permanent` as its cause's."""

    retryable = True

    def __init__(self, message: str, *, permanent: str = "") -> None:
        super().__init__(message)
        self.permanent = permanent


class Unreadable(LakeMirrorError):
    """Secrets of ours that can't be opened; once somebody has mended that, work goes on."""

    retryable = True


class Corrupt(LakeMirrorError):
    """Bytes or a record that do not give the identity that they claim."""


class Stopped(LakeMirrorError):
    """Somebody had the work stopped: no failure, and nothing may follow from what it would have found."""


class Fenced(LakeMirrorError):
    """We no longer hold the lease, or the destination is not the repository that we pinned: act no more."""


class NotSignedIn(Unauthenticated):
    """The caller of *our* service gave no credentials or wrong ones (plain Unauthenticated: we did, somewhere else)."""
