"""Labels as they are typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click


def labelled(labels: Mapping[str, str], given: Sequence[str], removed: Sequence[str]) -> dict[str, str]:
    """Labels with those that are given, each `key=value`, and without those that are removed."""
    if unknown := sorted(set(removed) - set(labels)):
        raise click.UsageError(f"there is no label '{unknown[0]}' to remove")
    kept = {key: value for key, value in labels.items() if key not in removed}
    return kept | {key: value for key, _, value in (label.partition("=") for label in given)}
