"""A mirror follows its source's garbage collection: a look through its namespace each week, and deletions by what two
of them found. The rules are in core/sweeping.py."""
