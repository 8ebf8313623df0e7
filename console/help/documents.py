"""Which documents there are, where each is shown, and what lies beside them: pictures and example files.

A document is known by its path below docs/ without the ending ("guide/tasks"); those of the project's root by their
name in lower case ("readme"). What is shipped does not change while the product runs, so it is read once.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.urls import reverse

from console.help.markdown import Rendered, Section, render, slug
from core.errors import NotFound

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
AT_ROOT = {name.lower(): f"{name}.md" for name in ("README", "CHANGELOG", "SECURITY", "CONTRIBUTING")}
FILES = {
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".yaml": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".conf": "text/plain; charset=utf-8",
}
"""What is given out besides documents, by the ending, with its type."""
GROUPS = (
    (
        "Guide",
        (
            "guide/concepts",
            "guide/tasks",
            "guide/two-stores",
            "guide/held-merges",
            "guide/garbage-collection",
            "guide/troubleshooting",
        ),
    ),
    (
        "Reference",
        (
            "pages",
            "how-it-works",
            "exports",
            "notifications",
            "installations",
            "preflight",
            "access",
            "signing-in",
            "audit",
            "api",
            "cli",
        ),
    ),
    ("Operations", ("deploy", "configuration", "running", "spark", "sandbox", "security", "changelog", "third-party")),
)
"""What the first page lists, in this order; all others follow under LAST."""
LAST = "Design and tests"


@dataclass(frozen=True, slots=True)
class Document:
    """A document, as it is shown. `title` is its first heading."""

    name: str
    title: str
    rendered: Rendered

    @property
    def address(self) -> str:
        """Its page."""
        return reverse("help-document", args=[self.name])

    @property
    def parts(self) -> list[Section]:
        """Its sections of the second level: what "On this page" lists."""
        return [one for one in self.rendered.sections if one.level == 2]


def document(name: str) -> Document:
    """Raises NotFound."""
    if name not in names():
        raise NotFound(f"help has no page {name!r}")
    return _read(name)


def documents() -> Iterator[Document]:
    """All of them, in the order of the first page."""
    for _, some in groups():
        yield from some


def is_listed(name: str) -> bool:
    """Whether a document is for who uses or runs LakeMirror, and not for who develops it."""
    return any(name in some for _, some in GROUPS)


@cache
def groups() -> list[tuple[str, list[Document]]]:
    """The first page: headings with their documents."""
    further = [name for name in names() if not is_listed(name)]
    every = [*GROUPS, (LAST, tuple(further))]
    return [(title, [document(name) for name in some]) for title, some in every]


@cache
def names() -> tuple[str, ...]:
    """Of all documents, sorted."""
    found = [str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")]
    return tuple(sorted([*found, *(name for name, file in AT_ROOT.items() if (ROOT / file).exists())]))


def file_of(name: str) -> Path:
    """A picture or an example below docs/, by its path there. Raises NotFound."""
    path = DOCS / name
    if path.suffix not in FILES or path not in _files():
        raise NotFound(f"help has no file {name!r}")
    return path


@cache
def _files() -> frozenset[Path]:
    return frozenset(path for path in DOCS.rglob("*") if path.is_file())


@cache
def _read(name: str) -> Document:
    path = _path_of(name)
    folder = path.parent.relative_to(ROOT).as_posix()
    rendered = render(path.read_text(encoding="utf-8"), lambda target: address_of(target, folder))
    return Document(name, rendered.sections[0].title, rendered)


def _path_of(name: str) -> Path:
    return ROOT / AT_ROOT[name] if name in AT_ROOT else DOCS / f"{name}.md"


def address_of(target: str, folder: str) -> str | None:
    """Where a link leads that stands in a document of `folder` (relative to the project); None if it is not shipped."""
    if "://" in target or target.startswith(("#", "mailto:")):
        return target
    path, hash_, anchor = target.partition("#")
    place = posixpath.normpath(posixpath.join(folder, path))
    name = place.removeprefix("docs/").removesuffix(".md")
    if place in AT_ROOT.values():
        return reverse("help-document", args=[name.lower()]) + hash_ + anchor
    if place.endswith(".md") and name in names():
        return reverse("help-document", args=[name]) + hash_ + anchor
    if place.startswith("docs/") and (ROOT / place).is_dir():
        return f"{reverse('help')}#{slug(LAST)}"
    return reverse("help-file", args=[name]) if DOCS / name in _files() and Path(name).suffix in FILES else None
