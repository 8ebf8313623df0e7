"""Commands of replication rules beyond those of `rules.py`."""
