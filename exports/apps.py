"""Continuous export: the app's place in the house; its models come with its own issue."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "exports"
