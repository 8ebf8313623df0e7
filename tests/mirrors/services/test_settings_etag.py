"""The ETag of a mirror's settings names all that the API lets one change, as the API says it."""

from __future__ import annotations

import hashlib
import json

from mirrors.api.serializers import MirrorSettings
from mirrors.models import Mirror
from mirrors.services.settings_etag import COLUMNS, etag_of


def test_it_names_every_setting_of_the_api() -> None:
    assert {name: field.source for name, field in MirrorSettings().fields.items()} == COLUMNS


def test_it_is_made_of_what_the_api_answers() -> None:
    mirror = Mirror(pk=7, content_sample=0.25, rpo_seconds=4, selected={"include": ["a*"], "exclude": ["ab"]})
    answered = json.dumps([7, MirrorSettings(mirror).data], sort_keys=True)
    assert etag_of(mirror) == f'"{hashlib.sha256(answered.encode()).hexdigest()[:32]}"'
    other = Mirror(pk=8, content_sample=0.25, rpo_seconds=4, selected={"include": ["a*"], "exclude": ["ab"]})
    assert etag_of(other) != etag_of(mirror)
