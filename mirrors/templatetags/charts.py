"""What a picture says to who points at it, drawn without a template: a page has hundreds of such places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from django import template
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from core.mirroring.rpo import in_words
from core.mirroring.states import State
from core.text.chart import TALL, Axis, Chart, Point
from core.text.plot import HEIGHT, WIDTH, draw
from mirrors.status.marks import Happening, Kind
from mirrors.status.mirror import MirrorStatus
from mirrors.status.series import MeasuredStep
from mirrors.status.sparks import Spark
from web.templatetags.pages import grouped, moment, size

register = template.Library()

HOUR, DAY, MOMENT = "hour", "day", "moment"
"""How much of a moment is said; times.js says it in another zone."""


@register.simple_tag
def points(chart: Chart, short: bool) -> SafeString:
    """The places of a chart, of which Tab reaches the last one, and arrow keys the others; each names its value and
    time, and shows them while it is pointed at or has the focus."""
    last = len(chart.points) - 1
    return mark_safe("".join(_point(chart.key, point, short, n == last) for n, point in enumerate(chart.points)))


def _point(key: str, point: Point, short: bool, is_stop: bool) -> str:
    form, middle = HOUR if short else MOMENT, point.share + point.width / 2
    anchor, x = ("start", 0.0) if middle < 0.25 else ("end", 1.0) if middle > 0.75 else ("middle", middle)
    dots = "".join(f'<circle cx="{middle:.2%}" cy="{y:.1f}" r="3.5"/>' for y in point.heights)
    return (
        f'<g class="point" id="{key}-{point.at.timestamp():.0f}" role="img" tabindex="{0 if is_stop else -1}"'
        f' aria-label="{escape(point.word)}, {said(point.at, form)} to {said(point.until, form)} UTC">'
        f'<rect x="{point.share:.2%}" width="{point.width:.2%}" height="{TALL}"/>{dots}'
        f'<text x="{x:.2%}" y="-4" text-anchor="{anchor}">{escape(point.word)} · {in_zone(point.at, form)}</text></g>'
    )


_SIGNS = {Kind.PAUSE: "‖", Kind.LATE: "!", Kind.FORCE: "▼", Kind.OTHERS: "✕"}


@register.simple_tag
def happened(chart: Chart, axis: Axis, found: Sequence[Happening]) -> SafeString:
    """What happened, on charts of lag: times as areas, moments as lines, each kind with a sign of its own. Decoration:
    a list beside the charts says it all."""
    return mark_safe("".join(map(partial(_happened, axis), found)) if chart.key.endswith("lag") else "")


def _happened(axis: Axis, one: Happening) -> str:
    start = min(1.0, max(0.0, axis.share(one.at)))
    end = 1.0 if one.goes_on else min(1.0, axis.share(one.until)) if one.until else start
    shape = (
        f'<rect class="happened {one.kind}" x="{start:.2%}" width="{max(0.002, end - start):.2%}" height="{TALL}"/>'
        if one.until or one.goes_on
        else f'<line class="happened {one.kind}" x1="{start:.2%}" x2="{start:.2%}" y1="0" y2="{TALL}"/>'
    )
    at = f'x="{(start + end) / 2:.2%}" y="12" text-anchor="middle"'
    return f'{shape}<text class="sign {one.kind}" {at}>{_SIGNS[one.kind]}</text>'


@register.filter
def sign(kind: Kind) -> str:
    """The sign of a kind on the charts."""
    return _SIGNS[kind]


@register.simple_tag
def spark(sparks: Mapping[int, Spark], reading: MirrorStatus) -> SafeString:
    """A mirror's lag over the last hour in the colour of its state, the target as a dashed line. Leads to more."""
    drawn = sparks.get(reading.mirror.pk)
    if drawn is None:
        return mark_safe("")
    top = 1.15 * max(drawn.target, drawn.worst or 0)
    shape, words = draw(drawn.values, top), escape(drawn.words)
    address = reverse("mirror_metrics", args=[reading.mirror.name])
    return mark_safe(
        f'<a class="spark {reading.state.tone}" href="{address}" title="{words}" aria-label="{words}">'
        f'<svg aria-hidden="true" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none">'
        f'<path class="level" d="M0 {HEIGHT - HEIGHT * drawn.target / top:.4g}H{WIDTH}"/>'
        f'<path class="line" d="{shape.line}"/></svg></a>'
    )


CATCHING_UP = {State.NEW, State.SYNCING, State.VALIDATING, State.LATE}
"""States in which a mirror gets there by itself."""


@register.simple_tag
def caught_up(sparks: Mapping[int, Spark], reading: MirrorStatus) -> timedelta | None:
    """How long a mirror that is behind will take to catch up; None where nobody can know."""
    drawn = sparks.get(reading.mirror.pk)
    if drawn is None or drawn.caught_up_at is None or not reading.pending or reading.state not in CATCHING_UP:
        return None
    return max(timedelta(minutes=1), drawn.caught_up_at - reading.as_of)


_PLAIN: Sequence[tuple[str, Callable[[MeasuredStep], str]]] = (
    ("Commits behind, peak", lambda step: grouped(step.backlog)),
    ("Commits behind, last", lambda step: grouped(step.backlog_last)),
    ("Missing, peak", lambda step: grouped(step.missing)),
    ("Heads promoted", lambda step: grouped(step.promoted)),
    ("Checks started", lambda step: grouped(step.checks)),
    ("", lambda step: in_words(step.branch_lag)),
    ("Commits seen", lambda step: grouped(step.seen)),
    ("Commits mirrored", lambda step: grouped(step.mirrored)),
    ("New objects", lambda step: grouped(step.new_objects)),
    ("New bytes", lambda step: size(step.new_bytes)),
    ("Objects checked", lambda step: grouped(step.objects)),
    ("Bytes checked", lambda step: size(step.bytes)),
)
"""The columns of the table of values after worst lag; the one without a name is the lag of a branch."""


@register.simple_tag
def value_rows(steps: Sequence[MeasuredStep], branch: str, target: float, now: datetime) -> SafeString:
    """The rows of the table of values: thousands of cells, so they are not a template's."""
    columns = [(escape(label or f"Lag of {branch}"), of) for label, of in _PLAIN]
    return mark_safe("".join(_value_row(step, columns, target, now) for step in steps))


def _value_row(
    step: MeasuredStep, columns: Sequence[tuple[str, Callable[[MeasuredStep], str]]], target: float, now: datetime
) -> str:
    late = " bad" if step.lag_seconds and step.lag_seconds > target else ""
    so_far = ' <span class="dim">so far</span>' if step.until > now else ""
    cells = "".join(f'<td class="right" data-label="{label}">{escape(of(step))}</td>' for label, of in columns)
    return (
        f'<tr id="m-{step.at.timestamp():.0f}"><th scope="row">{moment(step.at)}{so_far}</th>'
        f'<td class="right{late}" data-label="Worst lag">{in_words(step.lag_seconds)}</td>{cells}</tr>'
    )


def said(at: datetime, form: str) -> str:
    """A moment in UTC."""
    at = at.astimezone(UTC)
    day = f"{at.day} {at:%b}"
    return {HOUR: f"{at:%H:%M}", DAY: day, MOMENT: f"{day} {at:%H:%M}"}[form]


@register.simple_tag
def in_zone(at: datetime, form: str) -> SafeString:
    """A moment inside of a picture, where there is no <time>."""
    return mark_safe(f'<tspan data-at="{_iso(at)}" data-form="{form}">{said(at, form)}</tspan>')


@register.simple_tag
def at_minute(at: datetime, short: bool) -> SafeString:
    """A moment in a text, to the minute."""
    form = HOUR if short else MOMENT
    return mark_safe(f'<time datetime="{_iso(at)}" data-form="{form}">{said(at, form)}</time>')


def _iso(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
