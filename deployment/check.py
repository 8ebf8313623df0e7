"""Check a configuration without Django: `python -m deployment.check [FILE]` prints its facts as JSON.

Without a file: the configuration that a process would use here. Exits with 2 and one line when it can't be used.
"""

from __future__ import annotations

import json
import os
import sys

from deployment import config


def facts(settings: config.Config) -> dict[str, object]:
    """What whoever starts the processes needs to know; no secrets."""
    return {
        "region": settings.region,
        "regions": list(settings.regions),
        "served": list(settings.served),
        "listen_address": settings.listen_address,
        "worker_queue": settings.worker_queue,
        "spark_queue": settings.spark_queue,
        "database": settings.mirrors_database.type,
        "log_format": settings.logging.format,
        "accepted_not_used": config.unused_in_use(),
    }


def main() -> None:
    if len(sys.argv) > 1:
        os.environ["LAKEMIRROR_CONFIG"] = sys.argv[1]
    try:
        print(json.dumps(facts(config.current())))
    except config.ConfigError as error:
        print(f"configuration: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
