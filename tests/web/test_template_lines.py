"""Templates have one tag a line, for people; pages are sent without what their lines add."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.template import Context, engines

from web.template_lines import compact

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
LINE_LENGTH = 120
BLOCKS = (
    "html|head|body|header|main|nav|section|aside|form|fieldset|legend|div|p|h[1-6]|ul|ol|li|dl|dt|dd|table|caption"
    "|thead|tbody|tr|th|td|details|summary|figure|figcaption|pre|label|input|select|option|button|textarea"
)
OPENED = re.compile(rf"<(?:{BLOCKS})\b")
TAG = re.compile(r"\{% *(end)?(\w+)[^%]*%\}")
WITH_AN_END = ("if", "for", "with", "block", "tight", "kept")
BETWEEN = ("elif", "else", "empty")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_torn(line: str) -> bool:
    """Whether a tag of Django's that has an end lacks it on this line, and something else stands there too."""
    opened = 0
    whole = True
    for ends, name in TAG.findall(line):
        if name in BETWEEN:
            whole = whole and opened > 0
        elif name in WITH_AN_END:
            opened += -1 if ends else 1
            whole = whole and opened >= 0
    return not (whole and opened == 0) and TAG.fullmatch(line.strip()) is None


def rendered(source: str, **context: object) -> str:
    return engines["django"].engine.from_string(compact(source)).render(Context(context))


def test_djlint_finds_nothing() -> None:
    ended = subprocess.run([sys.executable, "-m", "djlint", "templates"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_can_be_read_line_by_line(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        assert len(line) <= LINE_LENGTH, f"line {number} has {len(line)} characters"
        assert len(OPENED.findall(line)) <= 1, f"line {number} opens several blocks"
        assert not is_torn(line), f"line {number}: a tag that ends further down has a line to itself"


@pytest.mark.parametrize(
    ("line", "torn"),
    [
        ("{% if one %}", False),
        ("{% if one %}here{% else %}there{% endif %}", False),
        ('<li{% if one %} class="bad"{% endif %}>', False),
        ("<p>{% if one %}", True),
        ("here{% endif %}", True),
        ("here{% else %}", True),
        ("{% if one %}{% for two in one %}", True),
    ],
)
def test_torn_lines_are_noticed(line: str, torn: bool) -> None:
    assert is_torn(line) is torn


def test_what_lines_add_is_not_sent() -> None:
    source = '<div>\n  {% if one %}\n    <p\n       class="x">\n      a\n    </p>\n  {% endif %}\n</div>\n'
    assert rendered(source, one=True) == '<div><p class="x">a</p></div>'


def test_a_break_in_a_text_stays_a_space() -> None:
    text = "<p>\n  one\n  <b>two</b>\n  {% if more %}\n    three\n  {% endif %}\n  four\n</p>"
    assert rendered(text, more=True) == "<p>one <b>two</b> three four</p>"
    assert rendered(text, more=False) == "<p>one <b>two</b> four</p>"


def test_a_condition_with_a_greater_sign_ends_no_tag() -> None:
    assert rendered('<p{% if 2 > 1 %} id="x"{% endif %}>\n  one\n</p>') == '<p id="x">one</p>'


@pytest.mark.parametrize("name", ["pre", "textarea"])
def test_what_is_typed_out_stays_as_it_is(name: str) -> None:
    source = f"<{name}>\n  one\n    two\n</{name}>"
    assert compact(f"<div>\n  {source}\n</div>").strip("</div>\n") == source.strip("</div>\n")


def test_a_break_after_tight_lines_is_a_space() -> None:
    source = "<p>\n  {% tight %}\n    <b>one</b>\n  {% endtight %}\n  two\n</p>"
    assert rendered(source) == "<p><b>one</b> two</p>"


def test_tight_lines_are_one() -> None:
    source = """
      {% tight %}
        {% for name in names %}
          <b>{{ name }}</b>
          {% if not forloop.last %}, {% endif %}
        {% endfor %}
        <i
          class="x">of
          all</i>
        .
      {% endtight %}
    """
    assert rendered(source, names=["a", "b"]).strip() == '<b>a</b>, <b>b</b><i class="x">of all</i>.'
