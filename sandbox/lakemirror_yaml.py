"""`lakemirror.yaml`: the configuration with which LakeMirror serves all of the sandbox's regions."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import yaml

from sandbox.layout import ACCESS_KEY_ID, SECRET_ACCESS_KEY, WEB, Layout, port_base, write_whole

FILE = "lakemirror.yaml"


def write_configuration(folder: Path, layout: Layout, *, hook_secret: str = "") -> Path:
    """Writes the file and returns its path. The encryption key of an earlier file stays."""
    path = folder / FILE
    values = configuration(layout, secret_key=_kept_key(path), hook_secret=hook_secret)
    # By way of JSON: YAML would write what occurs twice as anchors.
    write_whole(
        path,
        "# Made by `python -m sandbox up`: the demo's regions.\n"
        + yaml.safe_dump(json.loads(json.dumps(values)), sort_keys=False),
    )
    return path


def configuration(layout: Layout, *, secret_key: str, hook_secret: str = "") -> dict[str, Any]:
    """The values of the file."""
    source, *others = layout.regions
    keys = {"access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY}
    stores = {
        region.name: {
            "region": region.name,
            "endpoint": region.s3_url,
            "force_path_style": True,
            "credentials": keys,
        }
        for region in layout.regions
    }
    values: dict[str, Any] = {
        "region": source.name,
        "organization_id": "demo",
        "organization_name": "LakeMirror demo",
        "serve_regions": [region.name for region in layout.regions],
        "regional_endpoint": source.lakefs_url,
        "dst_endpoints": {region.name: region.lakefs_url for region in others},
        "mirrors_database": {"type": "sqlite"},
        "blockstore": {"type": "s3", "s3": stores[source.name]},
        "stores": stores,
        "auth": {"encrypt": {"secret_key": secret_key}},
        "source_lakefs_access_key_id": ACCESS_KEY_ID,
        "source_lakefs_secret_access_key": SECRET_ACCESS_KEY,
        "validator": {"cooldown_on_missing": "5s"},
        "listen_address": f"127.0.0.1:{port_base() + WEB}",
        "notifications": {"site_url": f"http://127.0.0.1:{port_base() + WEB}"},
    }
    hooks = {"secrets": {region.name: hook_secret for region in layout.regions}}
    return values | ({"hooks": hooks} if hook_secret else {})


def _kept_key(path: Path) -> str:
    try:
        return str(yaml.safe_load(path.read_text())["auth"]["encrypt"]["secret_key"])
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        return secrets.token_hex(32)
