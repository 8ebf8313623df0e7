"""The command `lakemirror`: a client of the replication API that knows nothing of the application behind it."""

__version__ = "0.1.0"
