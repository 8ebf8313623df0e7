"""gunicorn's settings (`gunicorn -c python:lakemirror_site.gunicorn_settings lakemirror_site.wsgi`)."""

from __future__ import annotations

import os as _os
import sys as _sys

# gunicorn takes every name here without an underscore for a setting of its own.
from deployment import config as _configuration
from lakemirror_site import logs as _logs
from lakemirror_site.rooms import HELD as _HELD
from lakemirror_site.rooms import SERVED as _SERVED

try:
    _config = _configuration.current()
except _configuration.ConfigError as _error:
    _sys.exit(f"lakemirror: configuration: {_error}")

bind = _config.listen_address
worker_class = "gthread"
workers = int(_os.environ.get("WEB_CONCURRENCY", 2))
threads = _SERVED + _HELD
preload_app = True
worker_tmp_dir = "/dev/shm"
graceful_timeout = 10
timeout = 60
keepalive = 5
control_socket_disable = True
# Whose X-Forwarded-Proto says that people came by https: cookies are made for that then.
_proxies = _os.environ.get("LAKEMIRROR_TRUSTED_PROXIES", "").replace(",", " ").split()
forwarded_allow_ips = ",".join(["127.0.0.1", *_proxies])
logconfig_dict = _logs.configuration(_config.logging)


def worker_exit(server: object, worker: object) -> None:
    """What a web process has gathered of strangers is not lost when it ends."""
    from audit import strangers

    strangers.write()
