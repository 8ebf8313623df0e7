"""How values look on a page: ids, moments, sentences, states, the rail."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from typing import Any

from django import template
from django.template import Context
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from core.installations.preflight import CheckOutcome
from core.mirroring.explain.blocker_text import brief_reason
from core.mirroring.facts import Thing
from core.mirroring.rpo import in_words
from core.mirroring.states import Stage, State, Tone
from core.replication.causes import Cause
from core.text.phrases import SHORT_ID, Kind, Part, Phrase, count
from web.pages import with_query

register = template.Library()

register.filter("words", in_words)

UNKNOWN = "—"
ICONS = {
    State.UP_TO_DATE: "check",
    State.UNSELECTED: "pause",
    State.LEAVING: "out",
    State.NEW: "spark",
    State.SYNCING: "arrows",
    State.VALIDATING: "half",
    State.REWOUND: "rewind",
    State.UNPROVEN: "half",
    State.RETRYING: "retry",
    State.PAUSED: "pause",
    State.UNKNOWN: "question",
    State.LATE: "clock",
    State.BLOCKED: "cross",
    State.DAMAGED: "cross",
    State.TAMPERED: "hand",
    State.FAILED: "cross",
    State.FROZEN: "lock",
    State.STOPPED: "stop",
}
STAGE_ICONS = {
    Stage.PAST: ("check", Tone.GOOD),
    Stage.HEAD: ("check", Tone.GOOD),
    Stage.READY: ("check", Tone.BUSY),
    Stage.CHECKING: ("half", Tone.BUSY),
    Stage.WAITING: ("clock", Tone.BUSY),
    Stage.BLOCKED: ("cross", Tone.BAD),
    Stage.GONE: ("cross", Tone.BAD),
    Stage.WAIVED: ("stop", Tone.QUIET),
}
_DASHED = re.compile(r"(\b\w+(?:-\w+)+\b)")
_HTML = {
    Kind.NAME: "<strong>{}</strong>",
    Kind.CODE: "<code>{}</code>",
}


@register.simple_tag
@lru_cache
def icon(name: str) -> SafeString:
    """An icon from the sheet in base.html; a word stands beside it, so it says nothing by itself."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>', name)


@register.filter
def of(values: Mapping[int, Any], key: int) -> Any:
    """What a mapping has for a key."""
    return values[key]


@register.filter
def percent(share: float) -> str:
    """A share between 0 and 1 in percent, as short as it goes."""
    return f"{share * 100:.4g} %"


@register.filter
def kept(share: float) -> str:
    """How much of the time something held: never rounded up to all of it."""
    return f"{floor(share * 1000) / 10:.4g} %"


@register.simple_tag
def posts(name: str, *args: object) -> SafeString:
    """What a form has that posts to the page of that name: a click is answered by a notice, or without scripts by a
    page."""
    form = 'method="post" action="{0}" hx-post="{0}" hx-target="#notices" hx-swap="innerHTML" hx-sync="this:drop"'
    return format_html(form, reverse(name, args=args))


@register.simple_tag
def state(value: State, more: str = "") -> SafeString:
    """A state as icon, word and colour."""
    return state_as(value, f"{value.word} {more}".strip())


@register.simple_tag
def state_as(value: State, word: str) -> SafeString:
    """The same under another word, for what is no mirror."""
    return format_html('<span class="state {}">{}{}</span>', value.tone, icon(ICONS[value]), word)


CHECKED = {
    CheckOutcome.OK: ("good", "check", "Passed"),
    CheckOutcome.WARNING: ("warn", "hand", "Warning"),
    CheckOutcome.FAILED: ("bad", "cross", "Failed"),
    CheckOutcome.UNKNOWN: ("quiet", "question", "Unknown"),
}


@register.simple_tag
def check_state(value: CheckOutcome) -> SafeString:
    """What a check came to as icon, word and colour."""
    tone, shape, word = CHECKED[value]
    return format_html('<span class="state {}">{}{}</span>', tone, icon(shape), word)


@register.simple_tag
def stage(value: Stage) -> SafeString:
    """How far a commit has come, as icon, word and colour."""
    name, tone = STAGE_ICONS[value]
    return format_html('<span class="state {}">{}{}</span>', tone, icon(name), value.word)


@register.filter
def rich(phrase: Phrase, mirror: str = "") -> SafeString:
    """A sentence with its names, ids and paths set apart; ids lead to the commits of a mirror that is named."""
    return format_html_join("", "{}", ((_part(part, mirror),) for part in phrase.parts))


def _part(part: Part, mirror: str) -> SafeString:
    if part.kind is Kind.ID:
        return _short(part.text, mirror)
    if part.kind is Kind.TEXT:
        return _unbroken(part.text)
    return format_html(_HTML[part.kind], part.text)


def _unbroken(text: str) -> SafeString:
    """Keep names with dashes, like those of regions, on one line."""
    return mark_safe(_DASHED.sub(r'<span class="whole">\1</span>', escape(text)))


@register.simple_tag
def commit_id(value: str, what: str = "commit id", mirror: str = "") -> SafeString:
    """An id by its first eight characters, with a button that copies all of it; "—" when there is none."""
    if not value:
        return mark_safe(f'<span class="id none">{UNKNOWN}</span>')
    return format_html('<span class="id">{}{}</span>', _short(value, mirror), copy_button(value, what))


@register.simple_tag
def commit_anywhere(value: str) -> SafeString:
    """The same, leading to the page that tells where the commit is."""
    if not value:
        return commit_id(value)
    shown = format_html('<code title="{}">{}</code>', value, value[:SHORT_ID])
    link = format_html('<a href="{}">{}</a>', reverse("commit", args=[value]), shown)
    return format_html('<span class="id">{}{}</span>', link, copy_button(value, "commit id"))


@register.simple_tag
def commit_link(mirror: Any, value: str, what: str = "commit id") -> SafeString:
    """The same, leading to the commit's page."""
    return commit_id(value, what, mirror.name)


def _short(sha: str, mirror: str) -> SafeString:
    """An id by its first eight characters; it leads to the commit's page if a mirror is named."""
    shown = format_html('<code title="{}">{}</code>', sha, sha[:SHORT_ID])
    return format_html('<a href="{}">{}</a>', _commit_url(mirror, sha), shown) if mirror else shown


@lru_cache(maxsize=4096)
def _commit_url(mirror: str, sha: str) -> str:
    return reverse("mirror_commit", args=[mirror, sha])


@register.simple_tag
def copy_button(value: str, what: str) -> SafeString:
    """A button that copies a text; shown only where JavaScript runs."""
    shown = value[:SHORT_ID] if what.endswith("id") else ""
    label = f"Copy {what} {shown}".strip()
    return format_html(
        '<button type="button" class="copy" data-copy="{}" aria-label="{}" title="{}">{}</button>',
        value,
        label,
        label,
        icon("copy"),
    )


@register.simple_tag
def moment(at: datetime | None, now: datetime | None = None) -> SafeString:
    """A time in UTC: of today by the clock alone, else with its date; "—" when it isn't known."""
    if at is None:
        return mark_safe(UNKNOWN)
    at = at.astimezone(UTC)
    same_day = now is not None and at.date() == now.astimezone(UTC).date()
    shown = f"{at:%H:%M:%S}" if same_day else f"{at:%Y-%m-%d %H:%M}"
    return format_html('<time datetime="{}">{}</time>', f"{at:%Y-%m-%dT%H:%M:%SZ}", shown)


@register.simple_tag
def ago(at: datetime | None, now: datetime) -> SafeString:
    """How long ago something was, with the moment itself for those who point at it."""
    if at is None:
        return mark_safe(UNKNOWN)
    words = in_words((now - at).total_seconds())
    shown = "just now" if words in ("0", "< 1 s") else f"{words} ago"
    return format_html('<time datetime="{}">{}</time>', f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", shown)


@register.simple_tag
def until(at: datetime | None, now: datetime) -> str:
    """How long until something happens; "now" when it is due."""
    if at is None:
        return UNKNOWN
    seconds = (at - now).total_seconds()
    return "now" if seconds < 1 else f"in {in_words(seconds)}"


@register.filter
def plus(seconds: float | None) -> str:
    """Seconds after the first sight: "+1.2 s", "+14 min"."""
    if seconds is None:
        return ""
    return f"+{seconds:.1f} s" if seconds < 10 else f"+{in_words(seconds)}"


@register.filter
def grouped(number: int | None) -> str:
    """A count with thousands separators."""
    return UNKNOWN if number is None else f"{number:,}"


@register.filter
def counted(number: int, more: bool) -> str:
    """A count that may have been broken off: "1,204", "more than 1,204"."""
    return f"more than {number:,}" if more else f"{number:,}"


@register.filter
def plural(number: int, noun: str) -> str:
    """A count with its noun: "1 commit", "1,204 commits"; a second form after a comma if it is irregular."""
    one, _, many = noun.partition(",")
    return count(number, one, many)


@register.filter
def size(number: int | None) -> str:
    """Bytes as people say them."""
    return UNKNOWN if number is None else filesizeformat(number)


@register.filter
def why(thing: Thing) -> str:
    """Why something blocks, in few words with a capital."""
    return brief_reason(thing).capitalize()


@register.filter
def cause_words(code: str) -> str:
    """Why replication has not brought something, in words; the cause of a newer version by its code."""
    return Cause(code).words if code in set(Cause) else code


@register.filter
def codes(shown: Sequence[object], of: Sequence[object]) -> SafeString:
    """Names, each as code, with commas; and how many more there are of them than are shown."""
    named = format_html_join(", ", "<code>{}</code>", ((name,) for name in shown))
    more = len(of) - len(shown)
    return format_html("{} and {} more", named, grouped(more)) if more > 0 else named


@register.simple_tag(takes_context=True)
def toggle(context: Context, branch: str) -> str:
    """The query that opens or closes a branch and leaves everything else as it is."""
    query = context["request"].GET.copy()
    opened = context["opened"]
    query.setlist("branch", [name for name in opened if name != branch] if branch in opened else [*opened, branch])
    return "?" + query.urlencode()


@register.simple_tag(takes_context=True)
def to_page(context: Context, number: int) -> str:
    """The query that leads to a page of the same list."""
    query = context["request"].GET.copy()
    query["page"] = number
    return "?" + query.urlencode()


@register.simple_tag(takes_context=True)
def query(context: Context, **changes: str) -> str:
    """The query of this list with some filters set, from its first page on."""
    return with_query(context["request"], **changes)


@register.filter
def dashes(word: str) -> str:
    """A code in words: "etag-differs" is "etag differs"."""
    return word.replace("-", " ")


@register.simple_tag
def percent_of(share: float) -> str:
    """A place in a picture, as SVG writes it."""
    return f"{share * 100:.2f}%"
