"""One region of the sandbox as a process of its own: `python -m tests.rule_fleet.region NAME LAKEFS_PORT S3_PORT`."""

from __future__ import annotations

import logging
import signal
import sys

from sandbox.httpd import bind
from sandbox.layout import Region
from sandbox.region import Serving, start_region


def main(name: str, lakefs_port: int, s3_port: int) -> None:
    """Serve until SIGTERM."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    start_region(Serving(Region(name, lakefs_port, s3_port), bind(lakefs_port), bind(s3_port)))
    signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
