"""Where LakeMirror is and with which access key it is asked: from the environment, else from a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import click
import yaml

from lakemirror.errors import WrongUsage

FILE = "~/.config/lakemirror.yaml"
API, EXPORTS_API = "/service/replication/v1", "/api/v1"
FIELDS = ("url", "access_key_id", "secret_access_key")


@dataclass(frozen=True, slots=True)
class Settings:
    """`url` without the API's own path."""

    url: str
    access_key_id: str
    secret_access_key: str = field(repr=False)


def read_settings(url: str = "") -> Settings:
    """What the command line, the environment and the file say, in this order. Raises WrongUsage."""
    known = _from_file(Path(FILE).expanduser()) | _from_environment()
    if url:
        known["url"] = url
    for name in FIELDS:
        if not known.get(name):
            raise WrongUsage(f"nothing says the {name}: set {_variable(name)}, or '{name}' in {FILE}")
    return Settings(_checked(known["url"]), known["access_key_id"], known["secret_access_key"])


def _variable(name: str) -> str:
    return f"LAKEMIRROR_{name.upper()}"


def _from_environment() -> dict[str, str]:
    """Both halves of the key or neither: two halves of different keys would only be refused."""
    values = {name: text for name in FIELDS if (text := os.environ.get(_variable(name), "").strip())}
    halves = [_variable(name) for name in FIELDS[1:] if name not in values]
    if len(halves) == 1:
        raise WrongUsage(f"{halves[0]} is not set, but the other half of the key is")
    return values


def _from_file(path: Path) -> dict[str, str]:
    try:
        text = path.read_text()
        readable = path.stat().st_mode & 0o077
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{FILE} can't be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    if readable:
        click.echo(f"lakemirror: others can read {FILE}, which holds a secret: chmod 600 {FILE}", err=True)
    return _fields(text)


def _fields(text: str) -> dict[str, str]:
    """The fields of the file. What is wrong with it is said without a word of it: it holds a secret."""
    try:
        body = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        raise WrongUsage(f"{FILE} is not YAML") from None
    if not isinstance(body, dict) or not all(isinstance(value, str) for value in body.values()):
        raise WrongUsage(f"{FILE} must have {', '.join(FIELDS)}, each a string (quoted if it looks like a number)")
    if unknown := sorted(str(name) for name in body.keys() - set(FIELDS)):
        raise WrongUsage(f"{FILE}: '{unknown[0]}' is not a known field (known: {', '.join(FIELDS)})")
    return body


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        well = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
    except ValueError:
        well = False
    if not well:
        raise WrongUsage("the url must look like https://lakemirror.example.com")
    if "@" in parts.netloc:
        raise WrongUsage(f"a url must not contain a secret: set {_variable('secret_access_key')}")
    return url.rstrip("/").removesuffix(API)
