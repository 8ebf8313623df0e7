"""Django settings, derived from one configuration (see deployment/config.py and docs/configuration.md)."""

from __future__ import annotations

import os
from pathlib import Path

from csp.constants import NONE, SELF

from deployment import config
from lakemirror_site import databases, logs

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = config.var_dir()
CONFIG = config.current()

# Derived, so that every machine of a deployment signs alike; a key of one's own in the environment wins.
SECRET_KEY = os.environ.get("LAKEMIRROR_SECRET_KEY") or CONFIG.derived_key("sessions")
DEBUG = False
# The first is the one that health.AnyHostForProbes gives to probes: nobody can come by it otherwise.
ALLOWED_HOSTS = ["probe.invalid", *CONFIG.web.allowed_hosts] if CONFIG.web.allowed_hosts else ["*"]
SECURE_HSTS_SECONDS = int(CONFIG.web.hsts.total_seconds())
# Scripts, styles, pictures and calls from here alone, nothing inline, no frames. The sign-in page adds its provider.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
PERMISSIONS_POLICY: dict[str, list[str]] = {
    feature: []
    for feature in ("camera", "display-capture", "fullscreen", "geolocation", "microphone", "payment", "usb")
} | {"clipboard-write": ["self"]}

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_htmx",
    "lakemirror_site",
    "web",
    "audit",
    "jobs",  # above django_q: its command qcluster counts
    "django_q",
    "rbac",
    "installations",
    "mirrors",
    "mirroring",
    "exports",
    "replication",
    "notifications",
    "console",
]
AUTH_USER_MODEL = "rbac.User"
MIDDLEWARE = [
    "web.requests.CurrentRequest",
    "lakemirror_site.health.AnyHostForProbes",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_permissions_policy.PermissionsPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "web.compression.GZip",
    "lakemirror_site.health.NothingBeforeTheTables",
    "rbac.signin.cookies.HostCookies",
    "rbac.signin.session_store.Sessions",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "audit.middleware.RecordRefusals",
    "lakemirror_site.error_pages.ErrorPages",
    "installations.refresh.UpToDate",
    "rbac.idempotency.OncePerKey",
]
ROOT_URLCONF = "lakemirror_site.urls"
# Whoever watches a process is answered whether or not there is a database.
ANSWERED_WITHOUT_DATABASE = ("/healthz", "/readyz", "/version")
WSGI_APPLICATION = "lakemirror_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    ["web.template_lines.Loader", "django.template.loaders.app_directories.Loader"],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "lakemirror_site.preparing.context",
                "lakemirror_site.organization.context",
            ],
        },
    }
]
DATABASES = {"default": databases.default(CONFIG, VAR_DIR)}

# Two clusters, each with a queue of its own: `<region>` for what waits on the network, `<region>-spark` for what
# launches Spark jobs. A message is only a wake-up and the duty's lease decides, so nothing is ever redelivered:
# `retry` is longer than any task, and `timeout` only ends what hangs. `name` salts the signatures and is therefore
# the same in all deployments of a database; the queue's name comes from Q_CLUSTER_NAME.
_TASK_SECONDS = 6 * 3600
Q_CLUSTER = {
    "name": "lakemirror",
    "cluster_name": CONFIG.worker_queue,
    "label": "Queues",
    "orm": "default",
    "broker_class": "jobs.broker.AttentiveBroker",
    "workers": CONFIG.workers.io,
    "queue_limit": 2 * CONFIG.workers.io,
    "timeout": _TASK_SECONDS,
    "retry": _TASK_SECONDS + 60,
    "max_attempts": 1,
    "ack_failures": True,
    "poll": 0.02 if CONFIG.mirrors_database.type == "sqlite" else 0.05,
    "guard_cycle": 1,
    "recycle": 100_000,
    "save_limit": -1,
    "scheduler": False,
    "catch_up": False,
    "ALT_CLUSTERS": {CONFIG.spark_queue: {"workers": CONFIG.spark_workers, "queue_limit": 2 * CONFIG.spark_workers}},
}
# So old may be what a process knows of the installations in the database.
INSTALLATIONS_SECONDS = 2.0
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rbac.keys.authentication.AccessKeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["web.parsing.WholeJSON"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "web.negotiation.JsonFirst",
    "DEFAULT_SCHEMA_CLASS": "web.openapi.Schema",
    "EXCEPTION_HANDLER": "web.errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "LakeMirror replication API",
    "DESCRIPTION": "Mirrors of lakeFS repositories in other regions. Times are UTC; what is unknown is null.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "PREPROCESSING_HOOKS": ["web.openapi.only_the_api"],
    "POSTPROCESSING_HOOKS": [],
    "WEBHOOKS": ["notifications.channels.api.MESSAGE"],
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "accessKey": {"type": "http", "scheme": "basic", "description": "access key id and secret"},
            "webhookSecret": {"type": "http", "scheme": "bearer", "description": "an installation's webhook secret"},
        }
    },
}
# A body is small here: JSON of a mirror, a webhook, a form.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
# A link to choose a new password works for a day.
PASSWORD_RESET_TIMEOUT = 24 * 3600
SESSION_ENGINE = "rbac.signin.session_store"
SESSION_COOKIE_NAME = "lakemirror_session"
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "lakemirror_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "lakemirror_site.error_pages.csrf_failure"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 8}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# Addresses of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are believed, separated by commas.
TRUSTED_PROXIES = os.environ.get("LAKEMIRROR_TRUSTED_PROXIES", "").replace(",", " ").split()
SESSION_COOKIE_HTTPONLY = True
LOGGING = logs.configuration(CONFIG.logging)
