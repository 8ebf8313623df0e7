"""Templates have one tag a line, for people; what their lines add, the loader takes out, so that answers stay small.

Nothing of that shows in a browser: a break that stays is one space, and those go that stand beside a block's tag, or
after a tag of Django's that has its line to itself, as with `trim_blocks` in Jinja. Where a break inside of a line of
text must be nothing at all, it stands between `{% tight %}` and `{% endtight %}`: there a break beside a tag, of HTML
or Django's, is nothing, and among words a space.
"""

from __future__ import annotations

import re

from django.template import Origin
from django.template.loaders import filesystem

_BLOCKS = (
    "html|head|body|meta|link|title|script|header|main|nav|section|aside|article|footer|div|p|h[1-6]|ul|ol|li|dl|dt|dd"
    "|table|caption|thead|tbody|tr|th|td|form|fieldset|legend|option|datalist|details|summary|figure|figcaption|dialog"
    "|pre|symbol|path|circle|rect|line|desc"
)
_SILENT = "if|elif|else|endif|for|empty|endfor|with|endwith|block|endblock|load"
_AS_TYPED = re.compile(r"(<pre\b.*?</pre>|<textarea\b.*?</textarea>)", re.DOTALL)
_BREAK = re.compile(r"[ \t]*\n\s*")
_TIGHT = re.compile(r"\{% tight %\}(.*?)\{% endtight %\}", re.DOTALL)
_AMONG_WORDS = re.compile(r"(?<=[^>}])\n(?=[^<{])")
_ALONE = re.compile(rf"^(\{{% (?:{_SILENT})\b(?:(?!%\}}).)*%\}})\n", re.MULTILINE)
_BEFORE_BLOCK = re.compile(rf"\n(?=</?(?:{_BLOCKS})\b)")
_AFTER_BLOCK = re.compile(rf"(</?(?:{_BLOCKS})\b(?:\{{%.*?%\}}|\{{\{{.*?\}}\}}|[^<>])*>)\n")


def compact(source: str) -> str:
    """A template without what its lines add; what is in `pre` and `textarea` stays as it is."""
    parts = _AS_TYPED.split(source)
    return "".join(part if place % 2 else _compact(part) for place, part in enumerate(parts))


def _compact(source: str) -> str:
    lines = _TIGHT.sub(_in_one_line, _BREAK.sub("\n", source))
    lines = _ALONE.sub(r"\1", lines)
    return _AFTER_BLOCK.sub(r"\1", _BEFORE_BLOCK.sub("", lines)).replace("\n", " ")


def _in_one_line(tight: re.Match[str]) -> str:
    return _AMONG_WORDS.sub(" ", tight[1].strip("\n")).replace("\n", "")


class Loader(filesystem.Loader):
    """Django's, of templates that are compact."""

    def get_contents(self, origin: Origin) -> str:
        return compact(super().get_contents(origin))
