"""Adapters from the configuration: the one place that knows which implementation serves a port."""
