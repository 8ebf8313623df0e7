"""How processes log: readable text or one JSON object a line, always to standard error, and without known secrets."""

from __future__ import annotations

import datetime
import json
import logging
import os
from typing import Any

from deployment.config import Logging
from deployment.known_secrets import hidden

_LEVELS = {"TRACE": "DEBUG", "WARN": "WARNING"}
_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    """What a call added by `extra=`."""
    return {key: value for key, value in vars(record).items() if key not in _ORDINARY}


class TextFormatter(logging.Formatter):
    """`12:00:01 WARNING mirrors.tasks: words key=value`; without the time where the supervisor writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.timed = not os.environ.get("LAKEMIRROR_SUPERVISED")

    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname} "
        extras = "".join(
            f" {key}={value}" for key, value in _extras(record).items() if key not in ("request", "status_code")
        )
        line = f"{level}{record.name}: {record.getMessage()}{extras}"
        if self.timed:
            line = f"{self.formatTime(record, '%Y-%m-%d %H:%M:%S')} {line}"
        return hidden(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, message, whatever the call added, and an exception's text."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        line |= _extras(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return hidden(json.dumps(line, default=str))


class WithoutProbes(logging.Filter):
    """A probe that is told 503 has its answer: somebody who asks each second would fill the log with it."""

    def filter(self, record: logging.LogRecord) -> bool:
        return getattr(getattr(record, "request", None), "path", "") != "/readyz"


def configuration(settings: Logging) -> dict[str, Any]:
    """The value of Django's LOGGING."""
    level = _LEVELS.get(settings.level.upper(), settings.level.upper())
    quiet = max(level, "WARNING", key=logging.getLevelName)
    formatter = JsonFormatter if settings.format == "json" else TextFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"chosen": {"()": formatter}},
        "filters": {"without_probes": {"()": WithoutProbes}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "chosen", "filters": ["without_probes"]},
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            # Kept out of the ordinary log: a line for each task, each worker of the web server, each call.
            **{name: {"handlers": ["stderr"], "level": quiet, "propagate": False} for name in _CHATTY},
        },
    }


_CHATTY = (
    "django-q",
    "gunicorn.error",
    "gunicorn.access",
    "botocore",
    "boto3",
    "urllib3",
    "s3transfer",
    "py4j",
    "pyspark",
    "werkzeug",
)
