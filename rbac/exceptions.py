"""Errors of the access app."""

from __future__ import annotations

from core.errors import Unauthenticated


class AppendOnly(TypeError):
    """A programmer's mistake: something tried to change or remove an audit event."""


class NotSignedIn(Unauthenticated):
    """The caller of *our* service gave no credentials or wrong ones (plain Unauthenticated: we did, somewhere else)."""
