"""Answers about commits, runs, lateness, loss, repairs and waivers, as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from lakemirror.output.formatting import UNKNOWN, clock, count, length, short, size
from lakemirror.output.missing_words import since, why_missing
from lakemirror.output.rendering import facts, line, listed, state, table

_FIRST_LINE, NAMED = 60, 5
_WAYS = {"copied": "LakeMirror copies", "awaited": "Awaited", "mended": "To repair", "gone": "Gone"}


# --- commits --------------------------------------------------------------------------------------------------------


def commit_list(page: dict[str, Any]) -> RenderableType:
    """Commits with the stage that each has reached."""
    rows = [
        (
            short(commit["id"]),
            _stage(commit),
            _when(commit),
            commit["committer"] or UNKNOWN,
            _first_line(commit["message"]),
        )
        for commit in page["results"]
    ]
    columns = ("Commit", "Stage", "Since", "By", "Message")
    return listed(columns, rows, none="No commits match.", more=page["pagination"]["has_more"])


def commit_detail(commit: dict[str, Any], mirror: str) -> RenderableType:
    """A commit with its steps, what is covered of it and what it lacks."""
    covered = commit["coverage"]
    ranges = f"{covered['covered_ranges']:,} of {covered['ranges']:,} checked" if covered else UNKNOWN
    entries = f"{covered['covered_entries']:,} of {covered['entries']:,} checked" if covered else UNKNOWN
    about = [
        ("Message", _first_line(commit["message"])),
        ("By", commit["committer"] or UNKNOWN),
        ("Parents", " ".join(map(short, commit["parents"])) or UNKNOWN),
        *((step["name"], clock(step["at"])) for step in commit["ladder"]),
        ("Ranges", ranges),
        ("Entries", entries),
        ("Blocked by", count(commit["blockers_total"], "problem") if commit["blockers_total"] else "nothing known"),
        ("History", "complete" if commit["history"] else "not complete yet"),
        ("Waived", _waived_words(commit["waived"])),
    ]
    if commit["detail"]:
        about.append(("Detail", commit["detail"]))
    head = Text.assemble(commit["id"], ": ", _stage(commit))
    as_of = line(f"As of {clock(commit['as_of'])} UTC")
    return Group(head, *_outages(commit), "", facts(about), *_missing(commit, mirror), "", as_of)


def _outages(commit: dict[str, Any]) -> list[RenderableType]:
    """Regions that do not answer now. An older server names none."""
    return [
        line(f"{outage['reason']} What is said of {outage['region']} may be out of date.")
        for outage in commit.get("outages", ())
    ]


def _missing(commit: dict[str, Any], mirror: str) -> list[RenderableType]:
    """The first things that a commit lacks with the reasons, each once, and where the others are."""
    things = {(thing["kind"], thing["address"], thing["path"]): thing for thing in reversed(commit["blockers"])}
    shown = list(reversed(things.values()))[:NAMED]
    if not shown:
        return []
    rows = [
        (
            thing["kind"],
            thing["path"] or thing["address"],
            size(thing["size"]),
            why_missing(thing),
            since(thing["first_seen"], commit["as_of"]),
        )
        for thing in shown
    ]
    shown_here = table(("Kind", "What", "Size", "Why", "Missing for"), rows)
    every = f"lakemirror mirror blockers {quote(mirror)} --commit {short(commit['id'])}"
    return ["", shown_here, "", line(f"Everything that keeps it back: {every}")]


def prioritised(answer: dict[str, Any]) -> RenderableType:
    """Whether anything is left to do for a commit."""
    words = "prioritised" if answer["prioritised"] else "already complete"
    return line(f"{short(answer['commit'])} {words}.")


def _stage(commit: dict[str, Any]) -> str:
    return "waived" if commit["waived"] else str(commit["stage"])


def _when(commit: dict[str, Any]) -> str:
    return next((clock(step["at"]) for step in commit["ladder"] if step["step"] == commit["stage"]), UNKNOWN)


def _first_line(message: str) -> str:
    text = message.partition("\n")[0]
    return text if len(text) <= _FIRST_LINE else f"{text[: _FIRST_LINE - 1]}…"


# --- repairs and waivers --------------------------------------------------------------------------------------------


def repair_plan(mirror: str, plan: dict[str, Any]) -> RenderableType:
    """Who brings what a commit lacks, and what looking for it takes; first the commands by which LakeMirror copies it
    itself."""
    if not plan["steps"]:
        return line(f"Nothing is known to be missing of {short(plan['commit'])}.")
    rows = [(_WAYS.get(step["way"], step["way"]), _step(step), step["fix"]) for step in plan["steps"]]
    requests = plan["requests"]
    cost = f"{count(requests['head'], 'request')} to the destination and at most as many to the source"
    read = f", {count(requests['get'], 'object')} read" if requests["get"] else ""
    records = f", {count(requests['records'], 'record')} copied" if requests["records"] else ""
    more = " More is missing than is listed." if plan["at_least"] else ""
    asked = line(f"A run takes {cost}{read}{records}.{more}")
    offer = _offer(mirror, plan.get("bring"))
    return Group(table(("Way", "What", "Advice"), rows), *offer, *_copies(plan.get("commands", ())), "", asked)


def _offer(mirror: str, offer: dict[str, Any] | None) -> list[RenderableType]:
    """What LakeMirror would copy in place of the stores. An older server offers nothing."""
    if not offer:
        return []
    if offer["held"]:
        return ["", line(f"LakeMirror could copy these objects itself. {offer['held']}.")]
    bring = f"lakemirror mirror bring {quote(mirror)}"
    ids = " ".join(f"--id {one}" for one in offer["wrong"])
    told = [f"{bring} --all"] if offer["missing"] else []
    told += [f"{bring} --replace {ids}"] if ids else []
    commands = [Text(one, no_wrap=True, overflow="ignore") for one in told]
    return ["", line("LakeMirror can copy these objects itself, once:"), *commands]


def _copies(files: Sequence[dict[str, Any]]) -> list[RenderableType]:
    """Commands for a shell, each in one line however wide the terminal is. An older server names none."""
    return [Text(f"\n{file['command']}", no_wrap=True, overflow="ignore") for file in files]


def _step(step: dict[str, Any]) -> str:
    return f"{step['message']} ({size(step['bytes'])})" if step["bytes"] else str(step["message"])


def waiver_list(page: dict[str, Any]) -> RenderableType:
    """Waivers with who gave them and why."""
    rows = [
        (str(waiver["id"]), _waived_what(waiver), waiver["given_by"], clock(waiver["given_at"]), waiver["reason"])
        for waiver in page["results"]
    ]
    columns = ("Waiver", "Waived", "By", "Given", "Reason")
    return listed(columns, rows, none="No waivers.", more=page["pagination"]["has_more"])


def waived(waiver: dict[str, Any]) -> RenderableType:
    """A waiver that was just given."""
    if objects := waiver.get("objects"):
        what = f"{count(len(objects), 'object')}, in all commits"
        return line(f"Waiver {waiver['id']} of {what}: only commits that branches are to point to wait for it.")
    return line(f"Waiver {waiver['id']} of {count(len(waiver['commits']), 'commit')}: nothing waits for them any more.")


def _waived_what(waiver: dict[str, Any]) -> str:
    objects = [one["path"] or one["address"] for one in waiver.get("objects", ())]
    if not objects:
        return _few(waiver["commits"])
    return objects[0] if len(objects) == 1 else f"{objects[0]} and {len(objects) - 1:,} more"


def _few(commits: Sequence[str]) -> str:
    more = f" and {len(commits) - 3:,} more" if len(commits) > 3 else ""
    return " ".join(map(short, commits[:3])) + more or UNKNOWN


def _waived_words(waiver: dict[str, Any] | None) -> str:
    return f"by {waiver['given_by']}: {waiver['reason']}" if waiver else "no"


# --- runs -----------------------------------------------------------------------------------------------------------


def run_list(page: dict[str, Any]) -> RenderableType:
    """Checks with their pace and what they found."""
    columns = ("Run", "Job", "Outcome", "Started", "Took", "Ranges", "Entries", "Problems")
    rows = [_run_row(run) for run in page["results"]]
    return listed(columns, rows, none="Nothing has been validated yet.", more=page["pagination"]["has_more"])


def _run_row(run: dict[str, Any]) -> Sequence[str]:
    return (
        str(run["id"]),
        run["job"],
        run["outcome"] or "lost",
        clock(run["started_at"]),
        length(run["seconds"]),
        f"{run['ranges_done']:,} of {run['ranges']:,}",
        f"{run['entries']:,}",
        f"{run['problems']:,}",
    )


# --- what is at risk ------------------------------------------------------------------------------------------------


def lag(page: dict[str, Any]) -> RenderableType:
    """How late each branch is, beside the target."""
    target = f"The target is {length(page['target_seconds'])}."
    columns = ("Branch", "State", "Behind", "Lag", "Within target", "Breaches")
    rows = [_lag_row(branch) for branch in page["results"]]
    return Group(line(target), "", table(columns, rows)) if rows else line(f"{target} No branch is known yet.")


def _lag_row(branch: dict[str, Any]) -> Sequence[str | Text]:
    attainment = branch["attainment_30d"]
    return (
        branch["branch"],
        state(branch["status"]),
        count(branch["pending_commits"], "commit") if branch["pending_commits"] else UNKNOWN,
        length(branch["lag_seconds"]),
        UNKNOWN if attainment is None else f"{int(attainment * 1000) / 10:g} %",
        f"{len(branch['breaches']):,}" if branch["breaches"] else UNKNOWN,
    )


def loss(page: dict[str, Any]) -> RenderableType:
    """What all branches together would lose, then each."""
    together = page["together"]
    if together is None:
        return line("Not known yet: the source has not been checked.")
    head = _loss_words(together) if together["commits"] else "Nothing seen so far would be lost."
    rows = [(branch["branch"], *_loss_cells(branch)) for branch in page["results"]]
    parts: list[RenderableType] = ["", table(("Branch", "Commits", "Objects", "Bytes", "Oldest"), rows)] if rows else []
    missed = [f"Not counted: {what}." for what in page["not_counted"]]
    return Group(line(head), *parts, "", *map(line, missed), line(f"As of {clock(page['as_of'])} UTC"))


def unreplicated(answer: dict[str, Any]) -> RenderableType:
    """How many objects of the source replication has not brought, as far as they were looked at."""
    looked = f"{answer['looked_at']:,}"
    if not answer["objects"]:
        limits = "; there was not enough time for the rest. The manifest lists everything that is missing"
        rest = limits if answer["at_least"] else ""
        return line(f"Nothing is missing: {looked} objects of the source checked{rest}.")
    more = "+" if answer["at_least"] else ""
    lacking = f"{answer['objects']:,}{more} of {looked}{more} objects of the source, {size(answer['bytes'])}{more}"
    return Group(
        line(f"Not at the mirror: {lacking}."),
        line("Recent writes may still be on their way. For the rest, run: lakemirror mirror manifest"),
        line(f"As of {clock(answer['as_of'])} UTC"),
    )


def _loss_words(figures: dict[str, Any]) -> str:
    commits, objects, total, oldest = _loss_cells(figures)
    noun = "commit" if commits == "1" else "commits"
    lacking = f"{objects} {'object' if objects == '1' else 'objects'} missing or wrong, {total}"
    things = lacking if figures["objects"] is not None else "number of objects not known"
    authors = ", ".join(author["committer"] for author in figures["authors"][:3])
    by = f" by {authors}{' and others' if len(figures['authors']) > 3 else ''}" if authors else ""
    return f"Would be lost: {commits} {noun}{by}; {things}; the oldest was seen {oldest}."


def _loss_cells(figures: dict[str, Any]) -> tuple[str, str, str, str]:
    more = "+" if figures["at_least"] else ""
    objects = UNKNOWN if figures["objects"] is None else f"{figures['objects']:,}{more}"
    return f"{figures['commits']:,}{more}", objects, size(figures["bytes"]), clock(figures["oldest_seen_at"])


# --- held merges ----------------------------------------------------------------------------------------------------


def held_list(page: dict[str, Any]) -> RenderableType:
    """What lakeFS asked, and what became of it."""
    rows = [
        (
            short(held["commit"]),
            held["branch"],
            held["state"],
            ", ".join(held["complete_in"]) or UNKNOWN,
            clock(held["held_at"]),
            held["detail"] or UNKNOWN,
        )
        for held in page["results"]
    ]
    columns = ("Commit", "Branch", "State", "Complete in", "Held at", "Answer")
    return listed(columns, rows, none="No merge was held yet.", more=page["pagination"]["has_more"])
