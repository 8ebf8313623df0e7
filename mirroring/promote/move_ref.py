"""One ref of a mirror, branch or tag: decided, judged, moved by force and read back, in one way for both kinds.

Publish last: everything is there and checked before the call that moves a ref; then the destination is asked where it
stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from adapters.lakefs import CALL_SECONDS
from core.errors import Conflict, Denied, Fenced, LakeMirrorError, NotFound, PartialFailure
from core.mirroring.judgement import Obstacle
from core.mirroring.promotion import Action, Decision
from core.ports import LakeFS
from jobs.lease import Lease
from mirroring.manage import require_pinned
from mirroring.promote.destination_heads import Shown
from mirroring.promote.resend_records import prove_after_404, prove_records
from mirroring.sweep.deletion_mark import newer_mark
from mirrors.models import Mirror
from mirrors.transitions.move_intents import intend

log = logging.getLogger("lakemirror.promote")

_OF_THE_MIRROR = {Obstacle.STOPPED, Obstacle.PAUSED, Obstacle.FROZEN, Obstacle.CHANGED, Obstacle.REPLACED}


@dataclass(slots=True)
class Round:
    """What all refs of one round over a mirror have in common. `shown`: what its branches lead to; `begun`: something
    was sent or written at the destination, which was ours then."""

    mirror: Mirror
    lakefs: LakeFS
    lease: Lease
    shown: Shown
    begun: bool = False

    def begin(self) -> None:
        """Nothing is sent to a repository that is not ours (before each forced call it is asked again), nor by books
        that are older than a deletion there."""
        if not self.begun:
            require_pinned(self.mirror, self.lakefs)
            if newer_mark(self.mirror) is not None:
                raise PartialFailure(
                    f"the database is older than what was last deleted at {self.mirror.name}: all is checked anew first"
                )
            self.begun = True


@dataclass(frozen=True, slots=True)
class ForcedCall:
    """`commit_id`: what the ref names once the call was made, "" if there is none then; `before`: what is written down
    right before it."""

    commit_id: str
    make: Callable[[], None]
    before: Callable[[], None] = lambda: None


class Ref(Protocol):
    """A branch or tag that is not at rest, with what is known of it."""

    is_tag: ClassVar[bool]

    @property
    def name(self) -> str: ...

    @property
    def head(self) -> str:
        """The commit that it names at the destination, "" if it is not there."""

    def note_move(self) -> None:
        """Write down who brought it where it is, if that is not as noted."""

    def decide(self) -> Decision:
        """Where it should be. Pure."""

    def note_rest(self, decision: Decision) -> None:
        """Nothing is to be done: the books follow what the destination says."""

    def prepare(self, decision: Decision) -> None:
        """What has to be done at the store before the move is judged."""

    def calls(self, decision: Decision) -> Sequence[ForcedCall]:
        """The forced calls that bring it there, in their order."""

    def read_back(self) -> str:
        """The commit that the destination says it names, "" if it is not there."""

    def note_elsewhere(self, head: str) -> None:
        """It did not come to where the calls should have brought it."""

    def record(self, decision: Decision) -> None:
        """The move goes into the books."""


def settle(ref: Ref, about: Round) -> bool:
    """Bring a ref where it should be, if it is not there; true if it was moved. Raises PartialFailure where it reads
    otherwise afterwards."""
    ref.note_move()
    decision = ref.decide()
    if decision.action is Action.NOTHING:
        ref.note_rest(decision)
        return False
    if _was_reselected(about.mirror):
        return False  # the next round is due at once, and knows better
    about.begin()
    if decision.commit_id and not _has_records(about, decision):
        return False
    ref.prepare(decision)
    carried_out, refused = _carry_out(ref, decision, about)
    if not carried_out:
        return False
    head = ref.read_back()
    if head != decision.commit_id:
        ref.note_elsewhere(head)
        raise PartialFailure(_mismatch(ref, decision, head, refused) + _who_has_its_name(ref, about.mirror, refused))
    ref.record(decision)
    return True


def _has_records(about: Round, decision: Decision) -> bool:
    return prove_records(about.mirror, about.lakefs, decision.commit_id, about.shown.history(), about.lease)


def _was_reselected(mirror: Mirror) -> bool:
    """Whether somebody changed which branches are mirrored since this round began."""
    return Mirror.objects.values_list("selected", flat=True).get(pk=mirror.pk) != mirror.selected


def _carry_out(ref: Ref, decision: Decision, about: Round) -> tuple[bool, LakeMirrorError | None]:
    """The forced calls, each judged last thing before it. Whether they were allowed, and what the last one answered if
    that was an error."""
    calls = ref.calls(decision)
    for number, call in enumerate(calls):
        ahead = [later.commit_id for later in reversed(calls[number:])]
        require_pinned(about.mirror, about.lakefs)
        if not _are_intended(ref, decision, ahead, about, completes=number > 0):
            return False, None
        call.before()
        about.lease.fence(CALL_SECONDS)
        if refused := _make(call, decision, about):
            return True, refused
    return True, None


def _are_intended(ref: Ref, decision: Decision, ahead: Iterable[str], about: Round, *, completes: bool) -> bool:
    """The move is judged by the facts as they are now, and written down: each commit that the ref names on its way."""
    for commit in ahead:
        judgement = intend(
            about.mirror,
            about.lease,
            name=ref.name,
            from_commit=ref.head,
            to_commit=commit,
            why=decision.why,
            position=decision.position,
            is_tag=ref.is_tag,
            completes=completes,
        )
        if judgement.allowed:
            continue
        if judgement.obstacle in _OF_THE_MIRROR:
            raise Fenced(f"{_text(ref)} stays where it is: {judgement.detail}")
        log.warning("%s: %s stays where it is: %s", about.mirror.name, _text(ref), judgement.detail)
        return False
    return True


def _make(call: ForcedCall, decision: Decision, about: Round) -> LakeMirrorError | None:
    """One forced call; gives what it answered if that was an error after which the move may have taken place."""
    try:
        call.make()
    except LakeMirrorError as error:
        if not (error.retryable or isinstance(error, Conflict | NotFound | Denied)):
            raise
        if isinstance(error, NotFound) and decision.commit_id:
            prove_after_404(about.mirror, about.lakefs, decision.commit_id, about.lease)
        log.warning("%s: reading back after: %s", about.mirror.name, error)
        return error
    return None


def _mismatch(ref: Ref, decision: Decision, head: str, refused: LakeMirrorError | None) -> str:
    message = f"{_text(ref)} reads {head[:8] or 'nothing'} after the call to "
    message += f"move it to {decision.commit_id[:8]}" if decision.commit_id else "delete it"
    return f"{message}: {refused}" if refused else message


def _who_has_its_name(ref: Ref, mirror: Mirror, refused: LakeMirrorError | None) -> str:
    """lakeFS has no branch and tag of one name: one that was kept here, though it is not followed any more, is in the
    way of the other."""
    others = mirror.branches.exclude(head="") if ref.is_tag else mirror.tag_rows.exclude(commit_id="")
    other = others.filter(name=ref.name).first() if isinstance(refused, Conflict) else None
    if other is None:
        return ""
    if ref.is_tag and not other.stray:  # it would be put back
        return ". The mirror keeps a branch of this name, which is not selected: select it again, and it goes"
    return f". The mirror has a {'branch' if ref.is_tag else 'tag'} of this name, which has to be deleted first"


def _text(ref: Ref) -> str:
    return f"the tag {ref.name}" if ref.is_tag else ref.name
