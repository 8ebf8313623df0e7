"""Reading frozen dataclasses from YAML and the environment, with errors of one line that name the field.

A section is a frozen dataclass; its fields' types say how a value is read (text, whole number, true/false, duration,
list, mapping, section), `spec` adds a default and a check. Every field may also be a variable of the environment: its
path in capitals, joined by `_` (see `env_name`).
"""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from datetime import timedelta
from typing import Any, TypeVar

import yaml

T = TypeVar("T")
ENV_PREFIX = "REPLICATION"


class ConfigError(Exception):
    """The configuration can't be used; the text is one line that names the field."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}" if name else problem)
        self.field = name


class Secret(str):
    """Text that never shows itself in a representation, a log line or a traceback's locals."""

    def __repr__(self) -> str:
        return "'***'" if self else "''"

    def reveal(self) -> str:
        """The text itself, to hand to whoever needs it."""
        return str.__str__(self)


def spec(default: Any = MISSING, *, check: Callable[[Any], str] | None = None) -> Any:
    """A field with its default and a check; the check returns what is wrong, or ""."""
    metadata = {"check": check} if check else {}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


def unused(default: Any, *, check: Callable[[Any], str] | None = None) -> Any:
    """A field of lakeFS's that is read, so that its file is a good one, and of which nothing comes."""
    return field(default=default, metadata={"unused": True} | ({"check": check} if check else {}))


def unused_fields(section: type[Any], given: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The dotted names of those that are given, below a section."""
    hints = typing.get_type_hints(section)
    for item in fields(typing.cast(Any, section)):
        value, kind, name = given.get(item.name), hints[item.name], prefix + item.name
        if value is not None and item.metadata.get("unused"):
            yield name
        elif is_dataclass(kind) and isinstance(value, dict):
            yield from unused_fields(typing.cast(type[Any], kind), value, f"{name}.")
        elif typing.get_origin(kind) is Mapping and is_dataclass(below := typing.get_args(kind)[1]):
            for key, entry in (value or {}).items():
                yield from unused_fields(typing.cast(type[Any], below), entry or {}, f"{name}.{key}.")


def sub(section: type[Any]) -> Any:
    """A section that may be left out: its own defaults stand."""
    return field(default_factory=section)


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 36_525 * 86_400.0
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def parse_duration(text: str) -> timedelta:
    """`1m`, `20s`, `1h30m`, `500ms`, `7d`; ValueError otherwise (a bare number has no unit)."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration (use 20s, 1m, 1h30m, 500ms)")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > _LONGEST:
        raise ValueError(f"{text!r} is longer than a hundred years")
    return timedelta(seconds=seconds)


def _boolean(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in known:
        raise ConfigError(name, f"{value!r} is neither true nor false")
    return known[str(value).lower()]


def _integer(value: Any, name: str) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"-?\d+", str(value).replace("_", "")):
        raise ConfigError(name, f"{value!r} is not a whole number")
    return int(str(value).replace("_", ""))


def _text(value: Any, name: str) -> str:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    raise ConfigError(name, f"expected text, got {_kind(value)}")


def _duration(value: Any, name: str) -> timedelta:
    try:
        return parse_duration(str(value))
    except ValueError as error:
        raise ConfigError(name, str(error)) from None


def _kind(value: Any) -> str:
    words = {dict: "a mapping", list: "a list", bool: "true/false", type(None): "nothing", str: "text"}
    return words.get(type(value), "a number")


def _items(value: Any, name: str) -> tuple[str, ...]:
    """A YAML list, or text with commas."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list):
        raise ConfigError(name, f"expected a list, got {_kind(value)}")
    return tuple(_text(item, name) for item in value)


_SCALARS: dict[Any, Callable[[Any, str], Any]] = {
    bool: _boolean,
    int: _integer,
    str: _text,
    timedelta: _duration,
    Any: lambda value, name: value,
    Secret: lambda value, name: Secret(_text(value, name)),
}


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(name, f"expected a mapping, got {_kind(value)}")
    return {str(key): item for key, item in value.items()}


def _convert(kind: Any, value: Any, name: str) -> Any:
    """A YAML value as the field's type; ConfigError names the field."""
    if is_dataclass(kind):
        return read_section(typing.cast(type[Any], kind), _mapping(value, name), name)
    origin = typing.get_origin(kind)
    if origin is tuple:
        return _items(value, name)
    if origin in (Mapping, dict):
        item = typing.get_args(kind)[1]
        return {key: _convert(item, entry, f"{name}.{key}") for key, entry in _mapping(value, name).items()}
    return _SCALARS[kind](value, name)


def read_section(section: type[T], given: Mapping[str, Any], name: str) -> T:
    """One section from its mapping: unknown and missing fields, wrong types and failing checks are errors."""
    prefix = f"{name}." if name else ""
    known = {item.name: item for item in fields(typing.cast(Any, section))}
    _refuse_unknown(given, known, prefix)
    hints = typing.get_type_hints(section)
    values = {}
    for item in known.values():
        if given.get(item.name) is not None:
            values[item.name] = _convert(hints[item.name], given[item.name], prefix + item.name)
        elif item.default is MISSING and item.default_factory is MISSING:
            values[item.name] = _absent(hints[item.name], prefix + item.name)
        else:
            continue
        check = item.metadata.get("check")
        if check and (problem := check(values[item.name])):
            raise ConfigError(prefix + item.name, problem)
    return section(**values)


def _absent(kind: Any, name: str) -> Any:
    """What a required field is without a value: a section names the field in it that is missing, a leaf itself."""
    if is_dataclass(kind):
        return read_section(typing.cast(type[Any], kind), {}, name)
    raise ConfigError(name, f"is required (in the file, or {env_name(name)} in the environment)")


def _refuse_unknown(given: Mapping[str, Any], known: Mapping[str, Any], prefix: str) -> None:
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise ConfigError(prefix + key, "no such field" + (f": did you mean {prefix}{near[0]}?" if near else ""))


# --- the environment --------------------------------------------------------------------------------------------------


def env_name(path: str) -> str:
    """The variable that overrides a field: `validator.run_interval` is REPLICATION_VALIDATOR_RUN_INTERVAL."""
    return "_".join([ENV_PREFIX, *re.split(r"[.-]", path)]).upper()


def leaves(section: type[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every field below a section that holds a value or a mapping: (dotted path, type)."""
    for name, kind in typing.get_type_hints(section).items():
        if is_dataclass(kind):
            yield from leaves(typing.cast(type[Any], kind), f"{prefix}{name}.")
        else:
            yield prefix + name, kind


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        below = tree.get(name)
        tree[name] = dict(below) if isinstance(below, dict) else {}
        tree = tree[name]
    tree[path[-1]] = value


def _keyed(path: str, kind: Any, environ: Mapping[str, str], known: list[str]) -> Iterator[tuple[list[str], str]]:
    """Overrides inside a mapping by region, e.g. REPLICATION_DST_ENDPOINTS_US_WEST_2: (path, value).

    A key is recognised among the known ones, else it is the rest of the name in small letters, `_` as `-`.
    """
    start = env_name(path) + "_"
    for name, value in environ.items():
        for end, leaf in _endings(typing.get_args(kind)[1]):
            if name.startswith(start) and name.endswith(end) and len(name) > len(start) + len(end):
                spelled = name[len(start) : len(name) - len(end)].lower().replace("_", "-")
                key = next((k for k in known if k.lower().replace("_", "-") == spelled), spelled)
                yield [*path.split("."), key, *leaf], value
                break


def _endings(item: Any) -> list[tuple[str, list[str]]]:
    """How the variables of a mapping's items end, the longest first: ("_ENDPOINT", ["endpoint"]); text has none."""
    if not is_dataclass(item):
        return [("", [])]
    paths = [path for path, _ in leaves(typing.cast(type[Any], item))]
    endings = [(env_name(path).removeprefix(ENV_PREFIX), path.split(".")) for path in paths]
    return sorted(endings, key=lambda pair: -len(pair[0]))


def overlay(
    data: Mapping[str, Any], section: type[Any], environ: Mapping[str, str], *, plain: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The file's fields under those of the environment; `plain` names are also read without the prefix."""
    tree = dict(data)
    for path, kind in leaves(section):
        is_mapping = typing.get_origin(kind) in (Mapping, dict)
        value = environ.get(env_name(path), environ.get(path.replace(".", "_")) if path in plain else None)
        if value is not None:
            _put(tree, path.split("."), parse_yaml(value, env_name(path)) if is_mapping else value)
        if is_mapping:
            for where, item in _keyed(path, kind, environ, _keys_at(tree, path)):
                _put(tree, where, item)
    return tree


def _keys_at(tree: Any, path: str) -> list[str]:
    """The keys that a mapping already has, to recognise them in the environment's spelling."""
    for name in path.split("."):
        tree = tree.get(name) if isinstance(tree, dict) else None
    return list(tree) if isinstance(tree, dict) else []


def parse_yaml(text: str, name: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(name, f"this is not YAML{where}") from None
