"""HTTP without models: what all pages and the whole API share."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "web"
    verbose_name = "Pages and API"
