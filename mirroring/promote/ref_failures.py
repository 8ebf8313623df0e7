"""What goes wrong with one branch or tag keeps no other one from its turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from core.errors import Denied, Fenced, LakeMirrorError, PartialFailure
from mirrors.models import Mirror

log = logging.getLogger("lakemirror.promote")

Guard = Callable[[Mirror, str], AbstractContextManager[None]]
"""Keeps what goes wrong with one branch or tag, as it is called in a sentence, from delaying the others."""


class Failures:
    """What went wrong with single branches and tags: it delays no other one. `number`: how often, but for what was
    forbidden."""

    def __init__(self) -> None:
        self.first = ""
        self.permanent = ""
        self.number = 0

    @contextmanager
    def of(self, mirror: Mirror, what: str) -> Iterator[None]:
        """Keep what goes wrong with one branch, say, for later; a lost lease ends the round."""
        try:
            yield
        except Fenced:
            raise
        except LakeMirrorError as error:
            log.warning("%s: %s: %s", mirror.name, what, error)
            self.number += not isinstance(error, Denied)
            if not self.first:
                self.first, self.permanent = f"{what}: {error}", error.permanent

    def tell(self) -> None:
        """Raise PartialFailure if anything failed."""
        if self.first:
            raise PartialFailure(self.first, permanent=self.permanent)
