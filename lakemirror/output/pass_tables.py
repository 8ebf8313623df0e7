"""Passes of replication rules as people read them."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from lakemirror.output.formatting import UNKNOWN, ago, length, size
from lakemirror.output.rendering import line, listed, table


def pass_list(page: dict[str, Any]) -> RenderableType:
    """Passes, the newest first."""
    columns = ("Pass", "Kind", "Targets", "State", "Done", "Failed", "Began", "By")
    rows = [
        (
            str(one["id"]),
            one["kind"],
            ", ".join(str(target["link"]) for target in one["targets"]),
            one["word"],
            _done(one),
            f"{one['failed_objects']:,}",
            ago(one["began_at"], page["as_of"]),
            one["who"],
        )
        for one in page["results"]
    ]
    return listed(columns, rows, none="No passes.", more=page["pagination"]["has_more"])


def one(told: dict[str, Any]) -> RenderableType:
    """A pass, with what it does to how many objects."""
    said = f": {told['message']}" if told["message"] else ""
    lines = [
        f"Pass {told['id']}, {told['kind']} of {told['rule']}: {told['word']}{said}",
        f"Done         {_done(told)} objects{_rate(told)}",
        f"Began        {ago(told['began_at'], told['as_of'])}, by {told['who']}",
    ]
    if told["prefix"] or told["older_than"] or told["what"] == "all":
        lines.append(f"Of           {_of(told)}")
    if told["kind"] == "resync":
        counts = f"{told['copied_objects']:,} copied ({size(told['copied_bytes'])}), {told['failed_objects']:,} failed"
        lines.append(f"Objects      {counts}, {told['waiting_objects']:,} to be copied")
    if told["report_rows"]:
        lines.append(f"Report       {told['report_rows']:,} rows: GET /passes/{told['id']}/report?format=csv")
    rows = [(str(row["link"]), row["words"], f"{row['objects']:,}", size(row["bytes"])) for row in told["actions"]]
    shown = [table(("Link", "Action", "Objects", "Bytes"), rows)] if rows else []
    return Group(*map(line, lines), *([""] if shown else []), *shown)


def _of(told: dict[str, Any]) -> str:
    parts = [f"keys that begin with {told['prefix']}"] if told["prefix"] else []
    parts += [f"objects last written before {told['older_than']}"] if told["older_than"] else []
    parts += ["everything, again"] if told["what"] == "all" else []
    return "; ".join(parts)


def _done(told: dict[str, Any]) -> str:
    total = told["total_objects"]
    if total is None:
        return f"{told['done_objects']:,} of {UNKNOWN}"
    about = "about " if told["total_is_estimate"] else ""
    return f"{told['done_objects']:,} of {about}{total:,}"


def _rate(told: dict[str, Any]) -> str:
    if told["ended_at"]:
        return ""
    rate = f", {told['objects_per_second']:,.0f}/s" if told["objects_per_second"] else ""
    return f"{rate}, about {length(told['eta_seconds'])} left" if told["eta_seconds"] is not None else rate


NAMES = {"egress": "egress, bytes", "storage": "storage, bytes", "list_month": "list, a month of comparisons"}


def cost(told: dict[str, Any]) -> RenderableType:
    """What a rule takes, target by target."""
    total = UNKNOWN if told["total_objects"] is None else f"{told['total_objects']:,}"
    if told["whole"]:
        lines = [f"All {told['sampled_objects']:,} objects were looked at."]
    else:
        lines = [f"Estimated from {told['sampled_objects']:,} of {total} objects: least, likely, most."]
    parts: list[RenderableType] = [*map(line, lines)]
    for target in told["targets"]:
        seconds = target["seconds"]
        takes = f", about {length(seconds['likely'])}" if seconds else ""
        copies = f"{_spanned(target['objects'])} objects, {size(target['bytes']['likely'])}{takes}"
        parts += ["", line(f"Link {target['link']}: {target['uri']} ({target['region']}): {copies}")]
        columns = ("What", "How many", *([told["currency"]] if told["currency"] else []))
        parts.append(table(columns, [_amount(one, bool(told["currency"])) for one in target["amounts"]]))
        if target["once"]:
            parts.append(line(f"Once {target['once']['likely']:,.2f} {told['currency']}"))
        if target["monthly"]:
            parts.append(line(f"A month {target['monthly']['likely']:,.2f} {told['currency']}"))
    return Group(*parts)


def _amount(one: dict[str, Any], with_price: bool) -> tuple[str, ...]:
    name = NAMES.get(one["name"], f"{one['name']} requests")
    price = UNKNOWN if one["cost"] is None else f"{one['cost']['likely']:,.2f}"
    return (name, _spanned(one), *([price] if with_price else []))


def _spanned(span: dict[str, Any]) -> str:
    if span["least"] == span["likely"] == span["most"]:
        return f"{span['likely']:,}"
    if span["most"] is None:
        return f"at least {span['least']:,}"
    return f"{span['likely']:,} ({span['least']:,} to {span['most']:,})"
