"""WSGI entry point."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from lakemirror_site.rooms import Rooms

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakemirror_site.settings")
application = Rooms(get_wsgi_application())
# Before the server forks its workers: each would otherwise import the views when it is first asked.
get_resolver().url_patterns  # noqa: B018
