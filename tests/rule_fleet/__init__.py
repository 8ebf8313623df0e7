"""Replication rules by real processes: stores, workers, controller, web and Spark, which are killed all the time, and
people who write, overwrite, delete, tag and lock everywhere. `scripts/soak rules` runs it."""

HOME, AWAY, FAR = "us-east-1", "eu-west-1", "ap-southeast-2"
REGIONS = (HOME, AWAY, FAR)
SOAK_ID = "x-amz-meta-soak"
"""The header of each object that people write: the number of the write that its content is of."""
SABOTAGE = "LAKEMIRROR_RULE_FLEET_SABOTAGE"
"""What is broken in all processes of LakeMirror: a name of tests/rule_fleet/sabotage.py."""
