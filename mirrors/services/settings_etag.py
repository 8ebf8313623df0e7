"""The ETag of a mirror: it names its settings, not its state. What it is for: web/etags.py."""

from __future__ import annotations

import hashlib
import json

from mirrors.api.serializers import MirrorSettings
from mirrors.models import Mirror


def etag_of(mirror: Mirror) -> str:
    """The tag of a mirror's settings. One that is made anew under an old name has another one."""
    told = json.dumps([mirror.pk, MirrorSettings(mirror).data], sort_keys=True)
    return f'"{hashlib.sha256(told.encode()).hexdigest()[:32]}"'
