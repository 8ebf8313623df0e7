"""Tags of a mirror that follows them: made once their commits are complete, after all of its branches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from django.db import transaction
from django.db.models import Q

from core.errors import NotFound
from core.mirroring.promotion import UNEXPLAINED, Action, Decision, Whose, Why
from core.mirroring.tag_promotion import TagFacts, choose_tag, whose_tag_move
from db import clock
from jobs.lease import Lease
from mirroring.promote.branch_facts import promotable
from mirroring.promote.move_ref import ForcedCall, Round, settle
from mirroring.promote.ref_failures import Guard
from mirroring.promote.resend_records import prove_newest
from mirroring.sense.read_log import list_tags
from mirrors.models import Mirror, MirrorTag, Promotion
from mirrors.queries.own_moves import has_put, is_news, last_place_of_tag
from mirrors.transitions.move_intents import intents_of

log = logging.getLogger("lakemirror.tags")


def follow_tags(about: Round, guard: Guard) -> int:
    """One round over a mirror's tags; how many were made, moved or deleted."""
    mirror = about.mirror
    if mirror.tags_unseen_since is None:  # whatever ends this look, and as long as nobody looks
        Mirror.objects.filter(pk=mirror.pk).update(tags_unseen_since=clock.now())
    if not mirror.tags:
        return 0
    with guard(mirror, "the list of its tags"):
        mirror_tags = list_tags(about.lakefs, mirror.name, about.lease)
        return _follow(about, mirror_tags, guard)
    return 0


def _follow(about: Round, mirror_tags: dict[str, str], guard: Guard) -> int:
    """Bring each tag where it should be; how many were moved. All are seen then, and what others did is noted."""
    mirror, lease, moved = about.mirror, about.lease, 0
    gathered = list(_gather(mirror, mirror_tags))
    moved_by_others = {name for name, facts in gathered if whose_tag_move(facts) in UNEXPLAINED}
    if is_news(mirror, moved_by_others, tags=True):
        about.begin()
        prove_newest(mirror, about.lakefs, lease)
    for name, facts in gathered:
        lease.renew()
        with guard(mirror, f"tag {name}"):
            if settle(TagRef(about, name, facts), about):
                mirror_tags.pop(name, None)  # no stray, although it was there when the round began
                moved += 1
    ours = {name for name, facts in gathered if facts.former}  # whatever keeps them from being put in order
    _note_strays(mirror, {name: mirror_tags[name] for name in mirror_tags.keys() - ours}, lease)
    Mirror.objects.filter(pk=mirror.pk).update(tags_unseen_since=None)
    return moved


def _gather(mirror: Mirror, mirror_tags: dict[str, str]) -> Iterator[tuple[str, TagFacts]]:
    """Facts about tags that are not at rest."""
    rows, intents = {row.name: row for row in mirror.tag_rows.all()}, intents_of(mirror, tags=True)
    stirring: dict[str, str] = {}
    found = mirror.source.tags.values_list("name", "commit_id", "gone_at", "missing_since")
    for name, commit, gone_at, missing_since in found:
        if missing_since is not None and gone_at is None and name not in mirror_tags:
            continue  # both sides lack it, as far as anybody has seen: the next look tells
        row, commit = rows.get(name), "" if gone_at else commit
        noted = row.commit_id if row and not row.stray else ""
        if not commit and gone_at is None:  # the source has it, at a commit that can't be read yet
            commit = _last_place(mirror, row) if row and not row.stray else ""
            if not commit:
                continue
            if name not in mirror_tags and (not row.commit_id or "" in intents[name]):
                commit = ""  # the source had deleted it meanwhile, and so have we
        at_rest = commit == mirror_tags.get(name, "") == noted and bool(commit) == (row is not None)
        if not at_rest or (row is not None and row.stands_at is not None):
            stirring[name] = commit
    whole = promotable(mirror, stirring.values())
    for name, commit in stirring.items():
        row = rows.get(name)
        is_ours = row is not None and not row.stray
        noted = _last_place(mirror, row) if row and is_ours and (commit or row.commit_id) else ""
        standing, intended = mirror_tags.get(name, ""), frozenset(intents[name])
        former = standing != noted and has_put(mirror, name, standing, tag=True, is_ours=is_ours)
        yield name, TagFacts(commit, standing, noted, is_ours, commit in whole, intended, former)


def _last_place(mirror: Mirror, row: MirrorTag) -> str:
    """Where we made it last, although it was deleted since, on its way to another commit."""
    return row.commit_id or last_place_of_tag(mirror, row.name)


# --- one of them ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class TagRef:
    """A tag of the mirror's, with what is known of it."""

    is_tag: ClassVar[bool] = True

    about: Round
    name: str
    facts: TagFacts

    @property
    def head(self) -> str:
        return self.facts.head

    def note_move(self) -> None:
        mirror, lease, whose = self.about.mirror, self.about.lease, whose_tag_move(self.facts)
        if whose is Whose.OURS and self.head:
            self.facts = _note_own_move(mirror, self.name, self.facts, lease)
        elif whose in UNEXPLAINED:
            _note_foreign_move(mirror, self.name, self.facts, UNEXPLAINED[whose], lease)
            self.facts = replace(self.facts, made_here=self.facts.made_here or self.facts.former)
        if self.facts.made_here:
            self.note_elsewhere(self.head)

    def decide(self) -> Decision:
        return choose_tag(self.facts)

    def note_rest(self, decision: Decision) -> None:
        _remember(self.about.mirror, self.name, self.facts, decision, self.about.lease)

    def prepare(self, decision: Decision) -> None:
        """A tag has no certificate."""

    def calls(self, decision: Decision) -> Sequence[ForcedCall]:
        """lakeFS moves no tag: one that is elsewhere is deleted first. Whoever ends between may be followed by a pause,
        so that it is on its way is written down before."""
        lakefs, place, commit = self.about.lakefs, (self.about.mirror.name, self.name), decision.commit_id
        before = self._note_absence if commit else lambda: None
        deleted = ForcedCall("", partial(lakefs.delete_tag, *place), before)
        made = ForcedCall(commit, partial(lakefs.create_tag, *place, commit))
        return {Action.CREATE: [made], Action.DELETE: [deleted]}.get(decision.action, [deleted, made])

    def read_back(self) -> str:
        try:
            return self.about.lakefs.get_tag(self.about.mirror.name, self.name).commit_id
        except NotFound:
            return ""

    def note_elsewhere(self, head: str) -> None:
        """One of ours that is not where its row says, whoever did it, is said to be where it is."""
        rows = self.about.mirror.tag_rows.filter(name=self.name, stray=False)
        with self.about.lease.transaction():
            rows.exclude(commit_id=head).update(stands_at=head)
            rows.filter(commit_id=head).exclude(stands_at=None).update(stands_at=None)

    def record(self, decision: Decision) -> None:
        mirror, lease = self.about.mirror, self.about.lease
        with transaction.atomic():
            _record(mirror, self.name, self.head, decision.commit_id, decision.why, lease)
            _note(mirror, self.name, decision.commit_id or None, lease)
            if decision.action is Action.DELETE:  # what stands there later is somebody's own
                mirror.intents.filter(name=self.name, is_tag=True).delete()

    def _note_absence(self) -> None:
        """A tag that we made is on its way from here; what somebody else put there is only not there any more."""
        if self.head == self.facts.noted:
            _note(self.about.mirror, self.name, "", self.about.lease)
        else:
            self.note_elsewhere("")


# --- the books ------------------------------------------------------------------------------------------------------


def _note_own_move(mirror: Mirror, name: str, facts: TagFacts, lease: Lease) -> TagFacts:
    """A worker ended between its call and its note: whatever the source's tag names by now, this one is ours."""
    intent = mirror.intents.get(is_tag=True, name=name, to_commit=facts.head)
    with transaction.atomic():
        _record(mirror, name, facts.noted, facts.head, Why(intent.why), lease)
        _note(mirror, name, facts.head, lease)
    return replace(facts, noted=facts.head, made_here=True)


def _note_foreign_move(mirror: Mirror, name: str, facts: TagFacts, why: Why, lease: Lease) -> None:
    """Once for each such move, although it may take several rounds until the tag can be put back."""
    last = mirror.promotions.filter(is_tag=True, branch=name).first()
    if last is None or (last.why, last.to_commit) != (why, facts.head):
        _record(mirror, name, facts.noted, facts.head, why, lease)


def _remember(mirror: Mirror, name: str, facts: TagFacts, decision: Decision, lease: Lease) -> None:
    """The destination is where it should be although our books said otherwise (a crash after the call)."""
    if not facts.source and not facts.head:
        _note(mirror, name, None, lease)
    elif decision.why is Why.UP_TO_DATE and facts.promotable and facts.noted != facts.source:
        _note(mirror, name, facts.source, lease)
    elif facts.head and facts.head == facts.noted and mirror.tag_rows.filter(name=name, commit_id="").exists():
        _note(mirror, name, facts.head, lease)  # it was to be deleted, and that was given up


def _note(mirror: Mirror, name: str, commit: str | None, lease: Lease, *, stray: bool = False) -> None:
    with lease.transaction():
        if commit is None:
            mirror.tag_rows.filter(name=name).delete()
            return
        values = {"commit_id": commit, "stray": stray, "stands_at": None}
        MirrorTag.objects.update_or_create(mirror=mirror, name=name, defaults=values)


def _record(mirror: Mirror, name: str, from_commit: str, to_commit: str, why: Why, lease: Lease) -> None:
    with lease.transaction():
        Promotion.objects.create(
            mirror=mirror,
            branch=name,
            is_tag=True,
            from_commit=from_commit,
            to_commit=to_commit,
            why=why,
            at=clock.now(),
        )
    log.info("%s: the tag %s is now at %s (%s)", mirror.name, name, to_commit[:8] or "nothing", why)


def _note_strays(mirror: Mirror, mirror_tags: dict[str, str], lease: Lease) -> None:
    """Tags at the destination that the source never had, or has elsewhere and we did not make: shown, never touched."""
    source_names = set(mirror.source.tags.values_list("name", flat=True))
    if not source_names:
        return  # the source's tags were not looked at yet
    known, intents = {row.name: row for row in mirror.tag_rows.all()}, intents_of(mirror, tags=True)
    mirror.tag_rows.filter(stray=True, name__in=known.keys() - mirror_tags.keys()).delete()
    for name, commit in mirror_tags.items():
        if commit in intents[name]:
            continue  # we made it, and that is noted once the source's tags were looked at
        row = known.get(name)
        foreign = name not in source_names or row is None or row.stray
        if foreign and (row is None or not row.stray or row.commit_id != commit) and _is_foreign(mirror, name, commit):
            back = row is None and has_put(mirror, name, commit, tag=True)
            if back and name in source_names:
                continue  # it goes where the source's is, once that can be read
            why = Why.BACK if back else Why.FOREIGN
            _record(mirror, name, row.commit_id if row else "", commit, why, lease)
            _note(mirror, name, commit, lease, stray=True)


def _is_foreign(mirror: Mirror, name: str, commit: str) -> bool:
    """Not one that is just where the source has it: its commit may only not be complete yet, as after a rebuild."""
    at_source = mirror.source.tags.filter(Q(commit_id=commit) | Q(unread_commit=commit), name=name, gone_at=None)
    return not at_source.exists()
