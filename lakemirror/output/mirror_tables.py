"""The API's answers as people read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from lakemirror.catch_up import ASIDE
from lakemirror.output.formatting import (
    UNKNOWN,
    ago,
    between,
    clean,
    clock,
    count,
    labels_of,
    length,
    short,
    size,
    until,
)
from lakemirror.output.missing_words import cause_words, on_request, short_reason, since, why_missing
from lakemirror.output.rendering import facts, line, listed, severity, state, table

# --- mirrors --------------------------------------------------------------------------------------------------------


def mirror_list(page: dict[str, Any]) -> RenderableType:
    """Mirrors, those that need somebody first."""
    mirrors = sorted(page["results"], key=lambda mirror: (severity(mirror["status"]), mirror["id"]))
    if not mirrors:
        return Text("No mirrors.")
    columns = ("Mirror", "State", "Source", "Region", "Branches", "Behind", "Lag", "Last advance")
    counted = Counter(mirror["status"] for mirror in mirrors)
    words = ", ".join(f"{number:,} {status}" for status, number in counted.items())
    return Group(line(f"{count(len(mirrors), 'mirror')}: {words}."), "", table(columns, map(_mirror_row, mirrors)))


def _mirror_row(mirror: dict[str, Any]) -> Sequence[str | Text]:
    staying, as_of = _staying(mirror), mirror["as_of"]
    well = sum(map(_is_caught_up, staying))
    return (
        mirror["id"],
        state(mirror["status"]),
        f"{mirror['source_repository']} ({mirror['source_region']})",
        mirror["region"],
        f"{well:,} of {len(staying):,}" if staying else UNKNOWN,
        _number(sum(branch["pending_commits"] for branch in staying), "commit"),
        length(_worst_lag(mirror)),
        ago(max((branch["advanced_at"] for branch in staying if branch["advanced_at"]), default=None), as_of),
    )


def _is_caught_up(branch: dict[str, Any]) -> bool:
    """Whether it is known to be as at the source; in a pause, too."""
    status = str(branch["status"])
    return status == "Up to date" or (status == "Paused" and bool(branch["lag_seconds"] == 0))


def mirror_standing(mirror: dict[str, Any]) -> RenderableType:
    """How a mirror is doing in one sentence."""
    head = Text.assemble(clean(mirror["id"]), ": ", state(mirror["status"]), "\n", clean(mirror["reason"]))
    return Group(head, *(line(f"Note: {warning}.") for warning in mirror["warnings"]))


def mirror_detail(mirror: dict[str, Any]) -> RenderableType:
    """A mirror with its figures, its settings and its branches."""
    as_of = mirror["as_of"]
    source = f"{mirror['source_repository']} in {mirror['source_region']}"
    figures = (
        ("Worst lag", _lag_words(mirror)),
        (
            "Behind",
            f"{count(sum(branch['pending_commits'] for branch in _staying(mirror)), 'commit')}, summed over branches",
        ),
        ("Source", f"{source}, checked {ago(mirror['source_looked_at'], as_of)}"),
        ("Mirror", f"{mirror['id']} in {mirror['region']}, checked {ago(mirror['destination_looked_at'], as_of)}"),
        ("Namespace", mirror["storage_namespace"]),
        ("Copied by", _copied_by(mirror)),
        *((("Now", asked),) if (asked := on_request(mirror.get("bringing"), as_of)) else ()),
        *_replication(mirror),
        ("Validated by", f"{mirror['validation_depth']}, history {mirror['history']}"),
        ("Branches", _selection(mirror["selected_branches"])),
        ("Tags", "mirrored" if mirror["tags"] else "not mirrored"),
        *((("Labels", labels_of(mirror)),) if mirror.get("labels") else ()),
        ("Created", clock(mirror["created_at"])),
    )
    columns = ("Branch", "State", "Mirror head", "Source head", "Behind", "Lag", "Missing", "Last advance")
    rows = [_branch_row(branch, as_of) for branch in mirror["branches"]]
    branches: list[RenderableType] = ["", table(columns, rows)] if rows else []
    return Group(mirror_standing(mirror), "", facts(figures), *branches, "", line(f"As of {clock(as_of)} UTC"))


def _copied_by(mirror: dict[str, Any]) -> str:
    """Who copies its objects, and how fast that may be."""
    if mirror["object_replication"] != "managed":
        return "the stores (native)"
    paused = ", paused" if mirror["copying_paused"] else ""
    limits = [f"{size(mirror['bytes_per_second'])}/s"] if mirror["bytes_per_second"] else []
    if mirror.get("objects_per_second"):  # a server of an earlier version has none
        limits.append(f"{count(mirror['objects_per_second'], 'object')}/s")
    pace = f", at most {' and '.join(limits)}" if limits else ""
    return f"LakeMirror (managed){paused}, {count(mirror['workers'], 'object')} at once{pace}"


def _replication(mirror: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Why the stores have not brought what it waits for: a line for each cause, after the word for the first one."""
    told = mirror.get("replication") or {"causes": []}
    for number, one in enumerate(told["causes"]):
        fix = f" {one['fix']}." if one["fix"] else ""
        text = f"{count(one['number'], 'object')}, {cause_words(one['cause'])}: {one['message']}.{fix}"
        yield "" if number else "Not replicated", text


def _branch_row(branch: dict[str, Any], as_of: str) -> Sequence[str | Text]:
    return (
        branch["name"],
        state(branch["status"]),
        short(branch["mirror_head"]),
        short(branch["source_head"]),
        _number(branch["pending_commits"], "commit"),
        length(branch["lag_seconds"]),
        _number(branch["blockers_total"], "object"),
        ago(branch["advanced_at"], as_of),
    )


def _staying(mirror: dict[str, Any]) -> list[dict[str, Any]]:
    """Branches that say how their mirror is doing."""
    return [branch for branch in mirror["branches"] if branch["status"] not in ASIDE]


def _worst_lag(mirror: dict[str, Any]) -> float | None:
    """None where nobody knows that of a branch, and no other is late."""
    lags = [branch["lag_seconds"] for branch in _staying(mirror)]
    worst = max((lag for lag in lags if lag is not None), default=None)
    return None if not worst and None in lags else worst


def _lag_words(mirror: dict[str, Any]) -> str:
    staying = _staying(mirror)
    behind = sum(branch["pending_commits"] > 0 for branch in staying)
    more = f" ({behind:,} of {count(len(staying), 'branch', 'branches')} behind)" if behind else ""
    return f"{length(_worst_lag(mirror))}{more}"


def _number(number: int, noun: str) -> str:
    return count(number, noun) if number else UNKNOWN


def _selection(selected: dict[str, Any]) -> str:
    words = ", ".join(selected["include"]) or "only the default branch"
    words += f" without {', '.join(selected['exclude'])}" if selected["exclude"] else ""
    left_out = selected["left_out"]
    return f"{words} ({left_out:,} of the source left out)" if left_out else words


# --- what is missing ------------------------------------------------------------------------------------------------


def blocker_list(page: dict[str, Any]) -> RenderableType:
    """What is missing or wrong, the longest known first."""
    things = page["results"]
    more = page["pagination"]["has_more"] or not page["all_named"] or not page.get("all_counted", True)
    if not things:
        return Text("Nothing is missing or damaged.")
    columns = ("Kind", "What", "Size", "Why", "Held by", "Missing for", "Attempts", "Next check")
    number = count(len(things), "problem")
    headline = f"The first {len(things):,}; there are more." if more else f"{number}: missing or damaged."
    return Group(line(headline), "", table(columns, (_blocker_row(thing, page["as_of"]) for thing in things)))


def blocker_groups(page: dict[str, Any], name: str) -> RenderableType:
    """How many things are missing or wrong for each reason, or below each folder."""
    rows = [
        (group[name] or UNKNOWN, f"{group['blockers']:,}", since(group["oldest"], page["as_of"]))
        for group in page["results"]
    ]
    more = page["pagination"]["has_more"] or not page.get("all_counted", True)
    columns = (name.capitalize(), "Problems", "Missing for")
    return listed(columns, rows, none="Nothing is missing or damaged.", more=more)


def missing_objects(page: dict[str, Any]) -> RenderableType:
    """Each thing once, with the commits that lack it."""
    rows = [
        (
            thing["path"] or thing["address"],
            short_reason(thing),
            _held(thing),
            since(thing["first_seen"], page["as_of"]),
        )
        for thing in page["results"]
    ]
    more = page["pagination"]["has_more"] or not page.get("all_counted", True)
    columns = ("Path", "Why", "Lacking it", "Missing for")
    return listed(columns, rows, none="Nothing is missing or damaged.", more=more)


def _held(thing: dict[str, Any]) -> str:
    """How many commits, and the newest of them."""
    named = " ".join(short(commit["id"]) for commit in thing["commits"][:2])
    return f"{count(thing['commits_total'], 'commit')}: {named}" if named else count(thing["commits_total"], "commit")


def _blocker_row(thing: dict[str, Any], now: str) -> Sequence[str | Text]:
    total = thing.get("commits_total")
    return (
        thing["kind"],
        thing["path"] or thing["address"],
        size(thing["size"]),
        why_missing(thing),
        UNKNOWN if total is None else count(total, "commit"),
        since(thing["first_seen"], now),
        f"{thing['attempts']:,}",
        until(thing["look_at"], now),
    )


# --- proofs ---------------------------------------------------------------------------------------------------------


def check(job: dict[str, Any]) -> RenderableType:
    """A check on demand."""
    what = f"branch {job['branch']}" if job["branch"] else f"commit {short(job['commit'])}" if job["commit"] else "all"
    head = f"Check {job['id']} of {what} by {job['depth']}: {job['state']}."
    if job["ended_at"] is None:
        return line(head)
    seen = f"{count(job['ranges_done'], 'range')} and {count(job['entries'], 'entry', 'entries')} checked"
    took = length(between(job["asked_at"], job["ended_at"]))
    return line(f"{head} {seen} within {took}: {count(job['problems'], 'problem')}.")


def certificate(fields: dict[str, Any], folder: str | None) -> RenderableType:
    """Every fact of a certificate, and the folder whose bytes gave the same."""
    shown = facts((name.replace("_", " ").capitalize(), _fact(value)) for name, value in fields.items())
    return Group(shown, "", line(f"The bytes in {folder} give the same content digest.")) if folder else shown


def _fact(value: Any) -> str:
    return UNKNOWN if value is None else f"{value:,}" if type(value) is int else str(value)
