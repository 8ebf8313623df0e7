"""The licence of each package, read from its metadata, held against the list in requirements/licences.toml.

Ids and expressions are those of SPDX (https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/), as PEP 639 has
them in metadata. Older metadata names licences in words of its own: those that can mean one thing only are translated
here, the rest is read by a person in the package's licence file and written into the list.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageMetadata
from pathlib import Path

from supply import DEVELOPMENT, IMAGE, ROOT
from supply.packages import Installed, Package, installed, locked

LIST = ROOT / "requirements" / "licences.toml"
PAGE = ROOT / "docs" / "third-party.md"

WORDS = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "mit license": "MIT",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
}
"""What metadata says in words that can mean one licence only. "BSD License" and "Dual License" are not among them."""
_ID = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9.+]+)+|MIT|ISC|Zlib|0BSD")
"""What looks like an id of SPDX."""


@dataclass(frozen=True)
class Allowed:
    """requirements/licences.toml."""

    image: frozenset[str]
    """Ids of what may be in the image, and so is handed on."""
    tools: frozenset[str]
    """Further ones, of what only the demo and the tests start."""
    read: dict[str, str]
    """By canonical name: the licence that a person read in the package's licence file, as its metadata doesn't tell."""
    shipped: dict[str, str]
    """By file name in static/vendor: the licence of what is served from there."""

    def of(self, package: Package) -> frozenset[str]:
        return self.image if package.stage in IMAGE else self.image | self.tools


def allowed(file: Path = LIST) -> Allowed:
    said = tomllib.loads(file.read_text())
    return Allowed(frozenset(said["image"]), frozenset(said["tools"]), said["read"], said["vendor"])


# --- what a package says ----------------------------------------------------------------------------------------------


def told(metadata: PackageMetadata) -> str:
    """The licence as an SPDX expression; "" where the metadata does not say it beyond doubt."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    words = str(metadata.get("License") or "").strip().splitlines()
    if words and (expression := _translated(words[0])):
        return expression
    named = [one.split(" :: ")[-1] for one in metadata.get_all("Classifier") or [] if one.startswith("License ::")]
    return _translated(named[0]) if len(named) == 1 else ""


def _translated(words: str) -> str:
    """An expression out of words: each licence in it known, or ""."""
    parts = re.split(r" (OR|AND) ", words.strip())
    ids = [_id(part) for part in parts[::2]]
    if not all(ids):
        return ""
    return "".join(ids[:1] + [f" {joint} {one}" for joint, one in zip(parts[1::2], ids[1:], strict=True)])


def _id(words: str) -> str:
    return WORDS.get(words.lower()) or (words if _ID.fullmatch(words) else "")


def permitted(expression: str, ids: Iterable[str]) -> bool:
    """May it be used by somebody who accepts only these licences? ValueError: no SPDX expression."""
    return _Expression(expression, frozenset(ids)).permitted()


class _Expression:
    """An SPDX expression: ids, `WITH` an exception, `AND` before `OR`, brackets."""

    def __init__(self, text: str, ids: frozenset[str]) -> None:
        self.text, self.ids = text, ids
        self.tokens = re.findall(r"[()]|[^\s()]+", text)[::-1]

    def permitted(self) -> bool:
        answer = self._any()
        if self.tokens:
            raise ValueError(f"no SPDX expression: {self.text!r}")
        return answer

    def _any(self) -> bool:
        answers = [self._all()]
        while self._next_is("OR"):
            answers.append(self._all())
        return any(answers)

    def _all(self) -> bool:
        answers = [self._one()]
        while self._next_is("AND"):
            answers.append(self._one())
        return all(answers)

    def _one(self) -> bool:
        if self._next_is("("):
            answer = self._any()
            if not self._next_is(")"):
                raise ValueError(f"no SPDX expression: {self.text!r}")
            return answer
        name = self._word()
        return (f"{name} WITH {self._word()}" if self._next_is("WITH") else name) in self.ids

    def _word(self) -> str:
        if not self.tokens or self.tokens[-1] in ("(", ")", "AND", "OR", "WITH"):
            raise ValueError(f"no SPDX expression: {self.text!r}")
        return self.tokens.pop()

    def _next_is(self, token: str) -> bool:
        if self.tokens[-1:] != [token]:
            return False
        self.tokens.pop()
        return True


# --- all of them ------------------------------------------------------------------------------------------------------


def licence(package: Package, environment: Installed, allow: Allowed) -> str:
    """A package's licence, "" where nobody knows it."""
    here = environment.get(package.key)
    return (told(here.metadata) if here else "") or allow.read.get(package.key, "")


def problems(packages: Iterable[Package], environment: Installed, allow: Allowed) -> list[str]:
    """One line for each package that may not be there, or whose licence is not known, and what to do."""
    return [words for one in packages if (words := _problem(one, environment, allow))]


def _problem(package: Package, environment: Installed, allow: Allowed) -> str:
    name, here = f"{package.name} {package.version}", environment.get(package.key)
    if here is None or here.version != package.version:
        there = f"{here.version} is installed" if here else "it is not installed"
        return f"{name}: {there}. ./scripts/test installs what requirements/ pins"
    if not (expression := licence(package, environment, allow)):
        return (
            f"{name}: its metadata names no licence for certain. Read its licence file; the SPDX id goes below [read]"
        )
    if package.key in allow.read and told(here.metadata):
        return f"{name}: its metadata says {told(here.metadata)!r} now: take it out of [read]"
    if not permitted(expression, allow.of(package)):
        kind = "the image" if package.stage in IMAGE else "the tests"
        return f"{name}: {expression} is not among the licences that {kind} may hold"
    return ""


def page(packages: Iterable[Package], environment: Installed, allow: Allowed) -> str:
    """docs/third-party.md, in Markdown."""
    rows = [
        f"| {package.name} | {licence(package, environment, allow)} |" for package in packages if package.stage in IMAGE
    ]
    files = [f"| `static/vendor/{name}` | {expression} |" for name, expression in sorted(allow.shipped.items())]
    return _PAGE.format(packages="\n".join(rows), files="\n".join(files))


_PAGE = """# What others wrote

What the image brings besides LakeMirror and Debian's packages, with its licence by [SPDX](https://spdx.org/licenses/).
Written by `./scripts/licences --write`; the tests hold it true, and hold every licence against the list in
[requirements/licences.toml](../requirements/licences.toml). `./scripts/sbom` writes the same with versions, as
CycloneDX, and with the Java libraries that pyspark brings.

The text of each licence lies beside its package, in `*.dist-info`; those of Spark's Java libraries in
`pyspark/licenses`. What is under the LGPL (psycopg) or the MPL (certifi) is used as it was published, as a library that
anybody may replace.

| package | licence |
|---|---|
{packages}

| file | licence |
|---|---|
{files}

Not in the image: what the demo and the tests add (`requirements/sandbox.txt`, `requirements/test.txt`), the tools of
`./scripts/sbom` and `./scripts/audit`, and the Java that `scripts/run` installs on a machine without one.
"""


def main(arguments: list[str]) -> int:
    """The page for people, or what is wrong; `--write`: into docs/. The exit status."""
    packages, environment, allow = locked((*IMAGE, *DEVELOPMENT)), installed(), allowed()
    wrong = problems(packages, environment, allow)
    for line in wrong:
        print(line)
    if wrong:
        return 1
    text = page(packages, environment, allow)
    if arguments == ["--write"]:
        PAGE.write_text(text)
        print(f"wrote {PAGE.relative_to(ROOT)}: every licence is allowed")
    else:
        print(text, end="")
    return 0
