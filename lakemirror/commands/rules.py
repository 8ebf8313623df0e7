"""Commands of replication rules: to list, configure and run them, and their links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import yaml

from lakemirror.commands.context import LIMIT, Talk, message, talks
from lakemirror.commands.labels import labelled
from lakemirror.commands.notifications import seconds_of
from lakemirror.commands.pausing import pause_terms
from lakemirror.errors import No
from lakemirror.output import rule_tables

RULES = "/rules"
LINK = click.option("--link", type=click.IntRange(1), metavar="N", help="Only the link of this number.")
Command = Callable[..., None]


def path_of(name: str, link: int | None = None) -> str:
    """The address of a rule below the API, or of one of its links."""
    rule = f"{RULES}/{quote(name, safe='')}"
    return rule if link is None else f"{rule}/links/{link}"


def _seconds(context: click.Context, parameter: click.Parameter, given: str | None) -> int | None:
    return None if given is None else seconds_of(context, parameter, given)


def _tags(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, str] | None:
    """The tags that were given; None: none was. Raises BadParameter."""
    if wrong := [tag for tag in given if not tag.partition("=")[2]]:
        raise click.BadParameter(f"'{wrong[0]}' has no value: give KEY=VALUE", context, parameter)
    return {key: value for key, _, value in (tag.partition("=") for tag in given)} or None


def _changes(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, as fields of the API. Raises UsageError."""
    any_tags = given.pop("any_tags", None)
    if any_tags and given["tags"]:
        raise click.UsageError("give either --tag or --any-tags")
    body = {name: value for name, value in given.items() if value is not None}
    return body | {"tags": {}} if any_tags else body


def _deletions() -> tuple[Any, ...]:
    """Which of them are followed, and how many without asking."""
    return (
        click.option(
            "--markers/--no-markers", default=None, help="Delete at the targets what is deleted at the source, or not."
        ),
        click.option(
            "--purges/--no-purges",
            default=None,
            help="Of all versions: delete for good what the source has so, or not.",
        ),
        click.option(
            "--delete-percent",
            type=click.IntRange(0, 100),
            metavar="N",
            help="More deletions in 24 hours, of what a target has, wait for approval.",
        ),
        click.option(
            "--delete-most", type=click.IntRange(0), metavar="N", help="More deletions in 24 hours wait for approval."
        ),
    )


def _settings(command: Command) -> Command:
    """The options that a rule is created and edited by."""
    options: tuple[Any, ...] = (
        click.option("--existing/--no-existing", default=None, help="Copy objects older than the rule, or leave them."),
        click.option("--new/--no-new", default=None, help="Copy objects that come after the rule, or leave them."),
        click.option(
            "--scan-every",
            callback=_seconds,
            metavar="TIME",
            help="How often both places are listed and compared: 15m, 1h, 7d.",
        ),
        click.option(
            "--tag", "tags", callback=_tags, multiple=True, metavar="KEY=VALUE", help="Only objects with all of these."
        ),
        click.option("--any-tags", is_flag=True, default=None, help="Objects with any tags, or none."),
        click.option(
            "--metadata",
            type=click.Choice(["all", "content"]),
            help="all: tags and locks travel, and changes of headers; content: only the bytes, with their headers.",
        ),
        click.option("--storage-class", metavar="CLASS", help="Of copies: a name, same, or '' for the store's own."),
        click.option(
            "--sweep-heads-per-second", type=int, metavar="N", help="Ask so many objects for changed metadata; 0: none."
        ),
        *_deletions(),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _turns(command: Command) -> Command:
    """The options that say what has its turn first."""
    options = (
        click.option(
            "--order", type=click.Choice(["new-first", "oldest-first"]), help="Which open objects are copied first."
        ),
        click.option(
            "--priority",
            type=click.IntRange(0, 1000),
            metavar="N",
            help="Among rules that share a limit of their store; 0 comes first.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _pace(command: Command) -> Command:
    """The options that limit a link."""
    options = (
        click.option("--workers", type=int, metavar="N", help="Copy so many objects at once."),
        click.option("--bytes-per-second", type=int, metavar="N", help="Copy at most so much; 0: no limit."),
        click.option("--objects-per-second", type=int, metavar="N", help="Copy at most so many objects; 0: no limit."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _limits(workers: int | None, bytes_per_second: int | None, objects_per_second: int | None) -> dict[str, Any]:
    """What was given of a link's pace, as fields of the API."""
    limits = {"bytes_per_second": bytes_per_second, "objects_per_second": objects_per_second}
    body = {name: value or None for name, value in limits.items() if value is not None}
    return body if workers is None else body | {"workers": workers}


# --- looking ----------------------------------------------------------------------------------------------------------


@click.command("list")
@click.option("--state", metavar="STATE", help="Only rules in this state, like blocked or up_to_date.")
@click.option("--label", multiple=True, metavar="KEY=VALUE", help="Only rules with this label; all of several.")
@talks
def list_rules(talk: Talk, state: str | None, label: Sequence[str]) -> None:
    """List replication rules, those that need attention first."""
    page = talk.api.pages(RULES, state=state, label=list(label) or None)
    talk.tell(page, rule_tables.rule_list)


@click.command()
@click.argument("rule")
@talks
def show(talk: Talk, rule: str) -> None:
    """Show a rule, link by link. Exits with 1 if a link is blocked or objects have failed."""
    answer = talk.api.get(path_of(rule))
    talk.tell(answer, rule_tables.rule)
    if rule_tables.is_in_trouble(answer):
        click.get_current_context().exit(No.exit_code)


@click.command()
@click.argument("rule")
@click.option("--link", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Of which link.")
@click.option("--code", metavar="CODE", help="Only those that failed for this reason.")
@click.option("--prefix", metavar="PREFIX", help="Only keys that begin with this.")
@LIMIT
@talks
def failures(talk: Talk, rule: str, link: int, code: str | None, prefix: str | None, limit: int) -> None:
    """List objects that could not be copied. Exits with 1 if there are any."""
    page = talk.api.pages(f"{path_of(rule, link)}/open", limit, status="failed", code=code, prefix=prefix)
    talk.tell(page, rule_tables.open_objects)
    if page["results"]:
        click.get_current_context().exit(No.exit_code)


# --- configuring ------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("rule")
@click.option("--source", nargs=2, metavar="REGION S3-URI", help="Where objects are copied from.")
@click.option(
    "--target", "targets", nargs=2, multiple=True, metavar="REGION S3-URI", help="Where to; may be given 8 times."
)
@_settings
@_turns
@_pace
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Set this label; may be repeated.")
@click.option(
    "--versions",
    type=click.Choice(["latest", "all"]),
    help="all: copy every version and delete marker, in order. It can't be changed later.",
)
@click.option(
    "--conflict",
    type=click.Choice(["source", "newest"]),
    help="newest: the later of two objects stays, so that rules may lead both ways. It can't be changed later.",
)
@click.option(
    "--overwrite/--no-overwrite", default=None, help="Targets need not be empty: replace there what differs, or refuse."
)
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON or YAML with the fields of the API; options come on top.",
)
@talks
def create(
    talk: Talk,
    rule: str,
    source: tuple[str, str] | None,
    targets: Sequence[tuple[str, str]],
    labels: Sequence[str],
    file: Path | None,
    workers: int | None,
    bytes_per_second: int | None,
    objects_per_second: int | None,
    **given: Any,
) -> None:
    """Create a rule: objects of one place are copied to up to eight others, from now on.

    \b
    lakemirror rule create logs --source us-east-1 s3://logs/2026 --target eu-west-1 s3://logs-eu/2026
    """
    pace = _limits(workers, bytes_per_second, objects_per_second)
    if pace and not targets:
        raise click.UsageError("--workers and limits are those of a --target; in a file they stand with each target")
    body: dict[str, Any] = (read_body(file) if file else {}) | {"name": rule}
    body |= _changes(given)
    if source:
        body["source"] = {"region": source[0], "uri": source[1]}
    if targets:
        body["targets"] = [{"region": region, "uri": uri} | pace for region, uri in targets]
    if labels:
        body["labels"] = labelled(body.get("labels") or {}, labels, ())
    if missing := [name for name in ("source", "targets") if name not in body]:
        raise click.UsageError(f"give --{missing[0].removesuffix('s')}, or a file that has '{missing[0]}'")
    talk.tell(talk.api.post(RULES, body), rule_tables.rule)


def read_body(file: Path) -> dict[str, Any]:
    """The body that a file holds. Raises UsageError."""
    try:
        body = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} is neither JSON nor YAML: {error}") from error
    if not isinstance(body, dict):
        raise click.UsageError(f"{file} has to be an object with the fields of a rule")
    return body


@click.command()
@click.argument("rule")
@_settings
@_turns
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Set this label; may be repeated.")
@click.option("--remove-label", "removed", multiple=True, metavar="KEY", help="Remove this label; may be repeated.")
@talks
def edit(talk: Talk, rule: str, labels: Sequence[str], removed: Sequence[str], **given: Any) -> None:
    """Change a rule's settings and labels. What is not given stays."""
    body = _changes(given)
    tag = ""
    if labels or removed:
        now, tag = talk.api.get_with_tag(path_of(rule))
        body["labels"] = labelled(now["labels"], labels, removed)
    if not body:
        raise click.UsageError("give at least one setting to change")
    talk.tell(talk.api.patch(path_of(rule), body, tag), rule_tables.rule)


@click.command("add-target")
@click.argument("rule")
@click.argument("region")
@click.argument("uri", metavar="S3-URI")
@_pace
@click.option("--overwrite/--no-overwrite", default=None, help="It need not be empty: replace what differs, or refuse.")
@talks
def add_target(talk: Talk, rule: str, region: str, uri: str, overwrite: bool | None, **pace: int | None) -> None:
    """Have a rule copy to one more place. What that lacks is copied at once; the other targets go on."""
    body = {"region": region, "uri": uri} | _limits(**pace)
    body |= {} if overwrite is None else {"overwrite": overwrite}
    talk.tell(talk.api.post(f"{path_of(rule)}/links", body), rule_tables.rule)


@click.command("remove-target")
@click.argument("rule")
@click.argument("link", type=click.IntRange(1), metavar="N")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@talks
def remove_target(talk: Talk, rule: str, link: int, yes: bool) -> None:
    """Have a rule copy to its target of this number no more. No object is deleted there."""
    if not yes and not click.confirm(
        f"Remove target {link} of the rule {rule}? Nothing more is copied to it; all objects stay", err=True
    ):
        raise No("nothing was removed")
    talk.api.delete(path_of(rule, link))
    if not talk.as_json:
        click.echo(f"Target {link} of {rule} removed. All objects stay.")


@click.command()
@click.argument("rule")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@talks
def delete(talk: Talk, rule: str, yes: bool) -> None:
    """Delete a rule. No object is deleted anywhere."""
    talk.api.get(path_of(rule))
    if not yes and not click.confirm(
        f"Delete the rule {rule}? Nothing more is copied by it; all objects stay", err=True
    ):
        raise No("nothing was deleted")
    talk.api.delete(path_of(rule))
    if not talk.as_json:
        click.echo(f"Rule {rule} deleted. All objects stay.")


# --- running ----------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("rule")
@LINK
@pause_terms
@talks
def pause(talk: Talk, rule: str, link: int | None, terms: dict[str, Any]) -> None:
    """Pause a rule, or one of its links: nothing new is copied within 10 s; what changes meanwhile is noted.

    It stays paused until it is resumed.
    """
    talk.tell(talk.api.post(f"{path_of(rule, link)}/pause", terms), rule_tables.rule)


@click.command()
@click.argument("rule")
@LINK
@talks
def resume(talk: Talk, rule: str, link: int | None) -> None:
    """Resume a rule, or one of its links. A rule and its link are paused apart."""
    talk.tell(talk.api.post(f"{path_of(rule, link)}/resume"), rule_tables.rule)


@click.command()
@click.argument("rule")
@talks
def scan(talk: Talk, rule: str) -> None:
    """List and compare all places of a rule now."""
    talk.tell(talk.api.post(f"{path_of(rule)}/scan"), message)


@click.command()
@click.argument("rule")
@LINK
@click.option("--all", "everything", is_flag=True, help="All objects that are not copied yet.")
@click.option("--code", metavar="CODE", help="Those that failed for this reason.")
@click.option("--item", "items", type=click.IntRange(1), multiple=True, metavar="ID", help="This object; repeatable.")
@talks
def retry(talk: Talk, rule: str, link: int | None, everything: bool, code: str | None, items: Sequence[int]) -> None:
    """Try objects again now, those that failed too."""
    if bool(everything) + bool(code) + bool(items) != 1:
        raise click.UsageError("give one of --all, --code and --item")
    body: dict[str, Any] = {"all": True} if everything else {"code": code} if code else {"items": list(items)}
    talk.tell(talk.api.post(f"{path_of(rule, link)}/retry", body), rule_tables.retried)


@click.command()
@click.argument("rule")
@click.option("--link", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Of which link.")
@_pace
@click.option(
    "--store-bytes-per-second",
    type=int,
    metavar="N",
    help="What all rules to the same store may do together; 0: no limit.",
)
@talks
def limits(
    talk: Talk,
    rule: str,
    link: int,
    workers: int | None,
    bytes_per_second: int | None,
    objects_per_second: int | None,
    store_bytes_per_second: int | None,
) -> None:
    """Change how fast a link copies, also while it does."""
    body = _limits(workers, bytes_per_second, objects_per_second)
    if store_bytes_per_second is not None:
        body["store_bytes_per_second"] = store_bytes_per_second or None
    if not body:
        raise click.UsageError("give at least one limit to change")
    talk.tell(talk.api.post(f"{path_of(rule, link)}/limits", body), rule_tables.rule)
