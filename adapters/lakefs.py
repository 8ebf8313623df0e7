"""lakeFS over its API: the one place that knows lakefs-sdk.

Reads and the copying of commit records (a second POST answers 409, "exists") are tried again after connection errors,
429 and 5xx. Forced moves of branches are sent once: the caller reads back and decides.
"""

from __future__ import annotations

import base64
import functools
import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any, TypeVar

import urllib3

from adapters.rights_of_calls import right_for_call
from adapters.s3.store import require_file
from core.clocks import seconds_ahead
from core.errors import (
    Conflict,
    Corrupt,
    Denied,
    Invalid,
    LakeMirrorError,
    NoData,
    NotFound,
    NotSent,
    RemoteFailure,
    Throttled,
    Unauthenticated,
    Unreachable,
)
from core.redaction import without_known
from core.types import BranchHead, Commit, GcRules, Page, RecordOutcome, RepositoryInfo, ServerInfo, Tag

R = TypeVar("R")

CONNECT_SECONDS = 3.0
READ_SECONDS = 15.0
_NO_CONNECTION = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
CALL_SECONDS = CONNECT_SECONDS + READ_SECONDS
"""The longest that one request may take: leases are checked to last longer than this before a forced call."""

_BY_STATUS: dict[int, type[LakeMirrorError]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Denied,
    404: NotFound,
    409: Conflict,
    410: NoData,
}

_HINTS = {
    401: "That lakeFS refuses the key {key}. Work continues by itself once lakeFS accepts it. To use another key, "
    "change it on the Installations page, or set source_lakefs_access_key_id with its secret and restart",
    403: "Grant the user of the key {key} {right} there. Work then continues by itself",
}

# What is acted upon for good when lakeFS says it: a proxy's own 404 page must not pass for it.
_DEFINITE = {400, 404, 409, 410}


@functools.cache
def _sdk() -> ModuleType:
    """lakefs-sdk, read when a lakeFS is asked first: that takes most of a second, and who serves pages, gives orders or
    watches the others asks none."""
    import lakefs_sdk

    return lakefs_sdk


class LakeFSAdapter:
    """One installation. Implements `core.ports.LakeFS`; safe to use from several threads."""

    def __init__(
        self,
        url: str,
        access_key_id: str,
        secret_access_key: str,
        *,
        tries: int = 4,
        pool: int = 16,
        ca_bundle: str = "",
        proxy: str = "",
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self.url, self.key_id = url.rstrip("/"), access_key_id
        self.tries, self.read_seconds = tries, read_seconds
        sent = base64.b64encode(f"{access_key_id}:{secret_access_key}".encode()).decode()
        self._secrets = (secret_access_key, sent)
        configuration = _sdk().Configuration(
            host=f"{self.url}/api/v1", username=access_key_id, password=secret_access_key
        )
        configuration.connection_pool_maxsize = pool
        configuration.retries = urllib3.Retry(0, redirect=False)
        configuration.proxy = proxy or configuration.proxy
        if ca_bundle:
            require_file(ca_bundle)
            configuration.ssl_ca_cert = ca_bundle
        client = _sdk().ApiClient(configuration)
        self._client = client
        self._config = _sdk().ConfigApi(client)
        self._repositories = _sdk().RepositoriesApi(client)
        self._branches = _sdk().BranchesApi(client)
        self._tags = _sdk().TagsApi(client)
        self._refs = _sdk().RefsApi(client)
        self._commits = _sdk().CommitsApi(client)
        self._internal = _sdk().InternalApi(client)
        self._experimental = _sdk().ExperimentalApi(client)

    def server(self) -> ServerInfo:
        """Version and clock. Any key that is let in may ask; NotFound from a server too old to say."""
        asked_at = time.time()
        answer = self._read("ask for the version", self._config.get_config_with_http_info)
        version = answer.data.version_config
        date = (answer.headers or {}).get("Date", "")
        return ServerInfo((version and version.version) or "", seconds_ahead(date, asked_at, time.time()))

    # Repositories

    def get_repository(self, repository: str) -> RepositoryInfo:
        """The repository as it is now, or NotFound."""
        answer = self._read(f"get repository {repository}", self._repositories.get_repository, repository)
        return _repository(answer)

    def list_repositories(self, *, prefix: str = "", after: str = "", amount: int = 1000) -> Page[RepositoryInfo]:
        """One page of the installation's repositories whose names begin so, by name. lakeFS leaves out what our key may
        not list."""
        page = {"prefix": prefix, "after": after, "amount": amount}
        answer = self._read("list repositories", self._repositories.list_repositories, **page)
        return Page([_repository(record) for record in answer.results], _next(answer.pagination))

    def create_mirror_repository(self, *, name: str, storage_namespace: str, default_branch: str) -> RepositoryInfo:
        """Create a bare, read-only repository (no first commit, no branch); Conflict when the name exists."""
        creation = _sdk().RepositoryCreation(
            name=name, storage_namespace=storage_namespace, default_branch=default_branch, read_only=True
        )
        what = f"create repository {name}"
        made = self._once(what, self._repositories.create_repository, repository_creation=creation, bare=True)
        # Not asked again: a server's cache may still know an earlier repository of that name. It omits `read_only`.
        return replace(_repository(made), read_only=True)

    def delete_repository(self, repository: str) -> None:
        """Remove the references of a repository, never its objects."""
        self._once(f"delete repository {repository}", self._repositories.delete_repository, repository, force=True)

    def gc_rules(self, repository: str) -> GcRules | None:
        """The garbage-collection rules in a repository's namespace; None without any. Needs
        retention:GetGarbageCollectionRules. NotFound: there is no such repository."""
        try:
            return self._read(f"read the garbage-collection rules of {repository}", self._ask_gc_rules, repository)
        except NotFound:
            self.get_repository(repository)
            return None

    def _ask_gc_rules(self, repository: str, _request_timeout: tuple[float, float]) -> GcRules:
        """Without the SDK's model, which refuses the `null` that lakeFS gives for no branches."""
        told = self._client.call_api(
            "/repositories/{repository}/settings/gc_rules",
            "GET",
            {"repository": repository},
            response_types_map={"200": "object"},
            auth_settings=["basic_auth"],
            _return_http_data_only=True,
            _request_timeout=_request_timeout,
        )
        try:
            branches = {str(row["branch_id"]): int(row["retention_days"]) for row in told.get("branches") or ()}
            return GcRules(int(told["default_retention_days"]), branches)
        except (AttributeError, KeyError, OverflowError) as error:
            raise ValueError("no garbage-collection rules") from error

    # Branches and history

    def list_branches(
        self, repository: str, *, after: str = "", amount: int = 1000, hidden: bool = True
    ) -> Page[BranchHead]:
        """One page of branches by name, hidden ones too unless told otherwise: no answer says which are hidden."""
        answer = self._read(
            f"list branches of {repository}",
            self._branches.list_branches,
            repository,
            after=after,
            amount=amount,
            show_hidden=hidden,
        )
        heads = [BranchHead(ref.id, ref.commit_id) for ref in answer.results]
        return Page(heads, _next(answer.pagination))

    def get_branch(self, repository: str, branch: str) -> BranchHead:
        """The branch's head as the server says it now, or NotFound."""
        answer = self._read(f"read branch {branch} of {repository}", self._branches.get_branch, repository, branch)
        return BranchHead(answer.id, answer.commit_id)

    def log_commits(self, repository: str, commit_id: str, *, after: str = "", amount: int = 1000) -> Page[Commit]:
        """One page of the history of a commit (by id: a page by branch name breaks when the branch moves)."""
        answer = self._read(
            f"log {commit_id[:8]} of {repository}",
            self._refs.log_commits,
            repository,
            commit_id,
            after=after,
            amount=amount,
        )
        return Page([_commit(commit) for commit in answer.results], _next(answer.pagination))

    def get_commit(self, repository: str, commit_id: str) -> Commit:
        """A commit record; lakeFS may answer from a cache of ten minutes, so this proves nothing."""
        answer = self._read(
            f"read commit {commit_id[:8]} of {repository}", self._commits.get_commit, repository, commit_id
        )
        return _commit(answer)

    def put_commit_record(self, repository: str, commit: Commit) -> RecordOutcome:
        """Give the destination a commit record. Corrupt when the server computes another id from its content; whatever
        kept an answer from us when nobody can tell whether the record was there before."""
        creation = _sdk().CommitRecordCreation(
            commit_id=commit.id,
            version=commit.version,
            committer=commit.committer,
            message=commit.message,
            metarange_id=commit.metarange_id,
            creation_date=commit.creation_date,
            parents=list(commit.parents),
            metadata=dict(commit.metadata),
            generation=commit.generation,
            force=True,
        )
        what = f"copy the record of commit {commit.id[:8]} to {repository}"
        try:
            return self._create(what, self._internal.create_commit_record, repository, creation)
        except Invalid as error:
            raise Corrupt(error.message, hint="The source's record does not match its id") from error

    # Forced moves: sent once, never repeated here

    def create_branch(self, repository: str, branch: str, commit_id: str, *, hidden: bool = False) -> None:
        """Create a branch at a commit. Conflict when a branch (or a tag) of the name exists."""
        only_if = {"hidden": True} if hidden else {}  # what older servers don't know they may refuse
        creation = _sdk().BranchCreation(name=branch, source=commit_id, force=True, **only_if)
        self._once(f"create branch {branch} of {repository}", self._branches.create_branch, repository, creation)

    def hard_reset_branch(self, repository: str, branch: str, commit_id: str) -> None:
        """Point a branch at a commit, whatever it points at now."""
        what = f"reset branch {branch} of {repository}"
        self._once(what, self._experimental.hard_reset_branch, repository, branch, ref=commit_id, force=True)

    def delete_branch(self, repository: str, branch: str) -> None:
        """Delete a branch; Denied for the default branch."""
        what = f"delete branch {branch} of {repository}"
        self._once(what, self._branches.delete_branch, repository, branch, force=True)

    def drop_uncommitted(self, repository: str, branch: str) -> None:
        """Throw away what somebody staged on a branch."""
        creation = _sdk().ResetCreation(type="reset", force=True)
        self._once(f"clean branch {branch} of {repository}", self._branches.reset_branch, repository, branch, creation)

    def has_uncommitted(self, repository: str, branch: str) -> bool:
        """Whether readers of the branch see more than its head."""
        what = f"check for uncommitted changes on {branch} of {repository}"
        answer = self._read(what, self._branches.diff_branch, repository, branch, amount=1)
        return bool(answer.results)

    # Tags

    def list_tags(self, repository: str, *, after: str = "", amount: int = 1000) -> Page[Tag]:
        """One page of tags by name."""
        answer = self._read(f"list tags of {repository}", self._tags.list_tags, repository, after=after, amount=amount)
        return Page([Tag(ref.id, ref.commit_id) for ref in answer.results], _next(answer.pagination))

    def get_tag(self, repository: str, tag: str) -> Tag:
        """The tag as the server says it now, or NotFound."""
        answer = self._read(f"read tag {tag} of {repository}", self._tags.get_tag, repository, tag)
        return Tag(answer.id, answer.commit_id)

    def create_tag(self, repository: str, tag: str, commit_id: str) -> None:
        """Create a tag at a commit; sent once. Conflict when a tag (or a branch) of the name exists."""
        creation = _sdk().TagCreation(id=tag, ref=commit_id, force=True)
        self._once(f"create tag {tag} of {repository}", self._tags.create_tag, repository, creation)

    def delete_tag(self, repository: str, tag: str) -> None:
        """Delete a tag; sent once."""
        self._once(f"delete tag {tag} of {repository}", self._tags.delete_tag, repository, tag, force=True)

    # Calls

    def _read(self, what: str, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        for attempt in range(1, self.tries):
            try:
                return self._once(what, call, *args, **options)
            except LakeMirrorError as error:
                if not error.retryable or isinstance(error, NoData):
                    raise
                time.sleep(_backoff(attempt, error))
        return self._once(what, call, *args, **options)

    def _create(self, what: str, call: Callable[..., Any], *args: Any) -> RecordOutcome:
        """Was it there before? A try whose answer we did not get may have been carried out: what is there after that
        one proves nothing, and its error is raised."""
        unheard: LakeMirrorError | None = None
        for attempt in range(1, self.tries + 1):
            try:
                self._once(what, call, *args)
                return RecordOutcome.CREATED
            except Conflict:
                if unheard:
                    raise unheard from None
                return RecordOutcome.EXISTS
            except LakeMirrorError as error:
                if not error.retryable or attempt == self.tries:
                    raise
                if not isinstance(error, Throttled | NotSent):
                    unheard = unheard or error
                time.sleep(_backoff(attempt, error))
        raise AssertionError("unreachable: the last try returns or raises")

    def _once(self, what: str, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        try:
            return call(*args, _request_timeout=(CONNECT_SECONDS, self.read_seconds), **options)
        except _sdk().ApiException as error:
            right = right_for_call(getattr(call, "__name__", ""))
            raise self._without_secrets(_translate(what, self.url, self.key_id, right, error)) from None
        except urllib3.exceptions.HTTPError as error:
            cause = getattr(error, "reason", None) or error
            kind = NotSent if isinstance(cause, _NO_CONNECTION) else Unreachable
            raise kind(f"{self.url} did not answer: {what} ({type(error).__name__})") from error
        except (ValueError, TypeError) as error:
            raise RemoteFailure(f"{self.url} gave an answer that is not from lakeFS: {what}") from error

    def _without_secrets(self, error: LakeMirrorError) -> LakeMirrorError:
        """What is in front of a lakeFS may repeat our headers in its answer, which people would then read."""
        error.message = without_known(error.message, self._secrets)
        error.args = (error.message,)
        return error


def _backoff(attempt: int, error: LakeMirrorError) -> float:
    retry_after = error.retry_after if isinstance(error, Throttled) else 0.0
    return max(min(retry_after, 10.0), random.uniform(0.5, 1.0) * 0.1 * 2**attempt)


def _translate(what: str, url: str, key_id: str, right: str, error: Any) -> LakeMirrorError:
    status = error.status or 0
    said = _message_of(error)
    message = f"could not {what} at {url}: {error.reason or 'no reason given' if said is None else said}"
    if status == 429:
        return Throttled(message, retry_after=_retry_after(error))
    if status in _DEFINITE and said is None:
        return RemoteFailure(f"{message} (status {status}, but not from a lakeFS)")
    if status in _BY_STATUS:
        return _BY_STATUS[status](message, hint=_HINTS.get(status, "").format(key=key_id, right=right))
    return RemoteFailure(f"{message} (status {status})")


def _message_of(error: Any) -> str | None:
    """What lakeFS itself says; None where something in front of it has answered."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return None


def _retry_after(error: Any) -> float:
    try:
        return float((error.headers or {}).get("Retry-After", 0))
    except ValueError:
        return 0.0


def _next(pagination: Any) -> str:
    return pagination.next_offset if pagination.has_more else ""


def _repository(record: Any) -> RepositoryInfo:
    return RepositoryInfo(
        id=record.id,
        storage_namespace=record.storage_namespace,
        default_branch=record.default_branch,
        creation_date=record.creation_date,
        read_only=bool(record.read_only),
    )


def _commit(record: Any) -> Commit:
    return Commit(
        id=record.id,
        parents=tuple(record.parents),
        committer=record.committer,
        message=record.message,
        creation_date=record.creation_date,
        metarange_id=record.meta_range_id,
        metadata=dict(record.metadata or {}),
        generation=record.generation or 0,
        version=record.version if record.version is not None else 0,
    )
