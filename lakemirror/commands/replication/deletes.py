"""Commands of rules that follow deletions: what waits for approval, and what somebody has to confirm."""

from __future__ import annotations

from typing import Any

import click

from lakemirror.commands.context import Talk, talks
from lakemirror.commands.rules import path_of
from lakemirror.errors import No
from lakemirror.output import rule_tables


@click.command()
@click.argument("rule")
@click.option("--id", "number", type=click.IntRange(1), metavar="ID", help="Which; left out, what waits is listed.")
@click.option("--reject", is_flag=True, help="Keep these objects until something changes, instead of deleting them.")
@click.option("--reason", metavar="TEXT", help="Why; it stands in the audit record.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@talks
def approve(talk: Talk, rule: str, number: int | None, reject: bool, reason: str | None, yes: bool) -> None:
    """List deletions that wait for approval, or have exactly these done. Without --id it exits with 1 if there are any.

    \b
    lakemirror rule approve logs
    lakemirror rule approve logs --id 7
    """
    waiting = f"{path_of(rule)}/approvals"
    if number is None:
        page = talk.api.pages(waiting, state="waiting")
        talk.tell(page, rule_tables.approvals)
        if page["results"]:
            click.get_current_context().exit(No.exit_code)
        return
    found = talk.api.get(f"{waiting}/{number}")
    if (
        not reject
        and not yes
        and not click.confirm(f"Delete {found['objects']:,} objects at {found['uri']}?", err=True)
    ):
        raise No("nothing was deleted")
    body: dict[str, Any] = {"reason": reason} if reason else {}
    talk.tell(talk.api.post(f"{waiting}/{number}/{'reject' if reject else 'approve'}", body), rule_tables.approval)


@click.command()
@click.argument("rule")
@click.option("--link", type=click.IntRange(1), required=True, metavar="N", help="Of which link.")
@click.option("--target", "what", flag_value="target", help="What lies at the target now is the right place.")
@click.option("--source", "what", flag_value="source", help="What the source has now is right.")
@talks
def confirm(talk: Talk, rule: str, link: int, what: str | None) -> None:
    """Confirm the target of a link that is stale, or the source of one that is frozen."""
    if what is None:
        raise click.UsageError("give --target or --source")
    talk.tell(talk.api.post(f"{path_of(rule, link)}/confirm-{what}"), rule_tables.rule)
