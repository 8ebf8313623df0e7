"""Sweeps of a mirror, on its page."""
