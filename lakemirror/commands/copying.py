"""The command that shows what LakeMirror copies for a mirror now, and steers it."""

from __future__ import annotations

import click

from lakemirror.commands.context import Talk, of_mirror
from lakemirror.output import copying_tables


@click.command()
@click.option("--pause/--resume", "paused", default=None, help="Copy nothing more, or go on.")
@click.option("--workers", type=int, metavar="N", help="Copy so many objects at once.")
@click.option("--bytes-per-second", type=int, metavar="N", help="Copy at most so much; 0: no limit.")
@click.option("--objects-per-second", type=int, metavar="N", help="Copy at most so many objects; 0: no limit.")
@of_mirror
def copying(
    talk: Talk,
    path: str,
    paused: bool | None,
    workers: int | None,
    bytes_per_second: int | None,
    objects_per_second: int | None,
) -> None:
    """Show what is copied for a managed mirror now: pace, lanes, what is left. Or pause, resume and limit it."""
    limits = {"bytes_per_second": bytes_per_second, "objects_per_second": objects_per_second}
    body = {name: value or None for name, value in limits.items() if value is not None}
    body |= {} if workers is None else {"workers": workers}
    if paused is not None and body:
        raise click.UsageError("give limits, --pause or --resume, not two of them at once")
    if paused is not None:
        answer = talk.api.post(f"{path}/copying/{'pause' if paused else 'resume'}")
    elif body:
        answer = talk.api.post(f"{path}/copying/limits", body)
    else:
        answer = talk.api.get(f"{path}/copying")
    talk.tell(answer, copying_tables.copying)
