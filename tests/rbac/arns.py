"""Resources that lakeFS asks about, and LakeMirror never."""

from __future__ import annotations

from core.access.policies import repository_arn


def tag_arn(repository: str, tag: str) -> str:
    return f"{repository_arn(repository)}/tag/{tag}"
