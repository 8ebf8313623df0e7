"""Errors of the audit."""

from __future__ import annotations


class AppendOnly(TypeError):
    """A programmer's mistake: something tried to change or remove an audit event."""
