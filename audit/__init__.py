"""The record of who did what: its chain, its seals, refused attempts, and how it is searched. See docs/audit.md."""
