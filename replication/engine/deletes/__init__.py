"""Rules that follow deletions: what is a link's own, what is gone at the source, and whether it may be deleted."""
