#!/usr/bin/env python3
"""Django's command line for LakeMirror."""

from __future__ import annotations

import os
import sys

from deployment.config import ConfigError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakemirror_site.settings")
    if sys.argv[1:2] == ["check_config"] and len(sys.argv) > 2:
        os.environ["LAKEMIRROR_CONFIG"] = sys.argv[2]  # the one to check, whatever this shell uses
    from lakemirror_site.command_list import CommandLine

    try:
        CommandLine(sys.argv).execute()
    except ConfigError as error:
        sys.exit(f"lakemirror: configuration: {error}")


if __name__ == "__main__":
    main()
