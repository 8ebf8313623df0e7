"""Prometheus's text form, for a hundred thousand samples and more: a line is made once and not looked at again.

The format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

from collections.abc import Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "lakemirror_"


class Gauge:
    """A gauge with its samples; `help_text` is one line of plain text. `kind`: a counter or histogram instead."""

    def __init__(self, name: str, help_text: str, *, kind: str = "gauge") -> None:
        self.name = f"{PREFIX}{name}"
        self._head = f"# HELP {self.name} {help_text}\n# TYPE {self.name} {kind}\n"
        self._lines: list[str] = []

    def add(self, labels: str, value: float, *, suffix: str = "") -> None:
        """One sample, under what `labelled` gave; `suffix` as a histogram's samples have it."""
        self._lines.append(f"{self.name}{suffix}{labels} {float(value)!r}\n")

    def text(self) -> str:
        """All of it."""
        return self._head + "".join(self._lines)


def labelled(names: Sequence[str], values: Sequence[str]) -> str:
    """Labels with their values as they stand in each line; the same ones serve several gauges."""
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
