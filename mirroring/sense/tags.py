"""The tags of a source, if a mirror of it follows them: what do they name, and by which history?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import models, transaction

from core.errors import LakeMirrorError
from core.mirroring import source_moves
from core.ports import LakeFS
from db import clock
from db.chunks import chunks
from jobs import duties
from jobs.lease import Lease
from mirroring.sense.commit_spool import Spool, served_mirrors
from mirroring.sense.identity import ask_identity, freeze, moved_since, tell_moved
from mirroring.sense.missing_refs import note_missing
from mirroring.sense.read_log import (
    forget_wrong,
    list_tags,
    read_histories,
    unread_before,
    unread_heads,
)
from mirrors.models import Mirror, MirrorDuty, Repository, SourceTag
from mirrors.transitions.required_commits import follow_heads


def look_at_tags(repository: Repository, lakefs: LakeFS, default_head: str, lease: Lease) -> str:
    """One look, right after a valid one at the branches, which found the default branch at `default_head`; gives a word
    on it, "" if nobody follows tags."""
    following, at = _following(repository).filter(source__frozen_reason=""), clock.now()
    if repository.tags_unseen_since is None:  # whatever ends this look, and as long as nobody looks
        Repository.objects.filter(pk=repository.pk).update(tags_unseen_since=at)
    if not following.exists():
        return ""
    tags = list_tags(lakefs, repository.name, lease)
    last = dict(repository.tags.filter(gone_at=None).values_list("name", "commit_id"))
    changed = source_moves.changed_branches(tags, last)
    unread: Mapping[str, str] = {}
    trusted = True
    if changed or last.keys() - tags:
        identity = ask_identity(repository, lakefs)
        if identity.problem:
            return freeze(repository, identity.problem).summary
        since = moved_since(repository, lakefs, identity, default_head)
        unread, trusted = _read(repository, lakefs, changed, since, at, lease)
    readable = {name: commit for name, commit in changed.items() if commit not in unread}
    for mirror in following.filter(follows_all=False):
        follow_heads(mirror, set(readable.values()), lease)
    with transaction.atomic():
        Repository.objects.select_for_update(no_key=True).get(pk=repository.pk)
        lease.lock()
        if trusted:
            Repository.objects.filter(pk=repository.pk).update(tags_unseen_since=None)
        _store(repository, readable, at)
        _note_unread(repository, {name: changed[name] for name in changed.keys() - readable.keys()}, at)
        if (trusted and note_missing(repository.tags.all(), tags, at)) or readable:
            for mirror in following:
                duties.wake(MirrorDuty.PROMOTE, mirror.pk)
    summary = f"{len(tags)} tags, {len(changed)} new or moved"
    return f"{summary}; {_name_left_out(changed, unread)}" if unread else summary


def tell_unseen(repository: Repository, error: LakeMirrorError) -> None:
    """Tell why nobody could see the tags in this look."""
    rows = Repository.objects.filter(pk=repository.pk, look_error="")
    rows.update(look_error=f"the tags can't be listed: {error.message}")


def unread_tags(repository: Repository) -> list[str]:
    """The commits of tags that could not be read in the look before, if a mirror follows tags."""
    commits = repository.tags.exclude(unread_commit="").values_list("unread_commit", flat=True)
    return list(commits) if _following(repository).exists() else []


def _following(repository: Repository) -> models.QuerySet[Mirror]:
    return served_mirrors(repository).filter(tags=True)


def _name_left_out(changed: Mapping[str, str], unread: Mapping[str, str]) -> str:
    """Which tags wait for another look, and why the first of them does; the others went on without them."""
    names = sorted(name for name, commit in changed.items() if commit in unread)
    return f"left out: {', '.join(names[:5])} ({unread[changed[names[0]]]})"


def _read(
    repository: Repository, lakefs: LakeFS, changed: Mapping[str, str], since: str, at: datetime, lease: Lease
) -> tuple[Mapping[str, str], bool]:
    """Store the commits that tags name and no branch leads to; gives those that can't be read, and why, and whether
    anything may follow from the list: not if nothing is known of where the default branch has moved `since`.

    A mirror that follows all branches and no tags is not given these: from now on it gets only what it needs. What a
    look at the branches could not read to its end stays as it is, and keeps no tag waiting that does without it.
    """
    spool, tagged = Spool(repository, lease), set(changed.values())
    commits = {*tagged, since} if since else tagged
    with transaction.atomic():
        Repository.objects.select_for_update(no_key=True).get(pk=repository.pk)
        repository.mirrors.filter(tags=False, follows_all=True).update(follows_all=False)
    before = repository.tags.exclude(unread_commit="").values_list("name", flat=True)
    waiting = [*unread_before(changed, before), *sorted(spool.lacking(spool.below(commits)))]
    errors = read_histories(spool, lakefs, commits, lease, waiting)
    branches = repository.branches.exclude(unread_head="").values_list("unread_head", flat=True)
    unrelated, _ = spool.unrelated()
    spool.leave_out(spool.roots() & unrelated)
    spool.place(at)
    unread = unread_heads(spool, commits, errors)
    forget_wrong(spool, unread, errors, branches)
    if since in unread:
        return dict.fromkeys(tagged, tell_moved(repository, since)), False
    lone = dict.fromkeys(unread.keys() & unrelated, "it shares no commit with any branch of the source")
    return {head: causes[0].message for head, causes in unread.items()} | lone, True


def _store(repository: Repository, tags: Mapping[str, str], at: datetime) -> None:
    rows = [SourceTag(repository=repository, name=name, commit_id=commit, seen_at=at) for name, commit in tags.items()]
    SourceTag.objects.bulk_create(
        rows,
        batch_size=100,
        update_conflicts=True,
        unique_fields=["repository", "name"],
        update_fields=["commit_id", "seen_at", "missing_since", "missing_looks", "gone_at"],
    )


def _note_unread(repository: Repository, unread: Mapping[str, str], at: datetime) -> None:
    """Which tags name a commit that can't be read: nobody is told that they are where the source has them."""
    noted = dict(repository.tags.exclude(unread_commit="").values_list("name", "unread_commit"))
    for some in chunks(sorted(noted.keys() - unread.keys())):
        repository.tags.filter(name__in=some).update(unread_commit="")
    for some in chunks(sorted(unread)):  # deleted once, and made again
        remade = repository.tags.filter(name__in=some).exclude(gone_at=None)
        remade.update(commit_id="", seen_at=at, missing_since=None, missing_looks=0, gone_at=None)
    for name, commit in unread.items():
        if noted.get(name) != commit:
            made = {"commit_id": "", "seen_at": at, "unread_commit": commit}
            SourceTag.objects.update_or_create(
                repository=repository, name=name, defaults={"unread_commit": commit}, create_defaults=made
            )
