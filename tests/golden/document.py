"""The API's document as it was agreed. `python -m tests.golden.document` writes it anew: a change that is meant."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parent / "openapi.json"


def bare(value: Any) -> Any:
    """Without tags and descriptions, which may be put better at any time. Fields of these names stay: they are no
    lists, and no texts."""
    if isinstance(value, dict):
        return {name: bare(one) for name, one in value.items() if not _is_told(name, one)}
    return [bare(one) for one in value] if isinstance(value, list) else value


def _is_told(name: str, value: Any) -> bool:
    return (name == "tags" and isinstance(value, list)) or (name == "description" and isinstance(value, str))


def as_text(document: Any) -> str:
    """As it is kept: keys sorted, so that a change is a few lines."""
    return json.dumps(bare(document), indent=1, sort_keys=True) + "\n"


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakemirror_site.settings_test")
    import django

    django.setup()
    from web import openapi

    GOLDEN.write_text(as_text(openapi.document()))


if __name__ == "__main__":
    main()
