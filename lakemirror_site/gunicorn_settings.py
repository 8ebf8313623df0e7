"""gunicorn's settings (`gunicorn -c python:lakemirror_site.gunicorn_settings lakemirror_site.wsgi`)."""

from __future__ import annotations

import os
import sys

from lakemirror_site import config, logs

try:
    _config = config.current()
except config.ConfigError as error:
    sys.exit(f"lakemirror: configuration: {error}")

bind = _config.listen_address
worker_class = "gthread"
workers = int(os.environ.get("WEB_CONCURRENCY", 2))
threads = 8
preload_app = True
worker_tmp_dir = "/dev/shm"
graceful_timeout = 10
timeout = 60
keepalive = 5
control_socket_disable = True
logconfig_dict = logs.configuration(_config.logging)
