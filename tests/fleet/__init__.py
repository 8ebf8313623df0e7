"""A fleet of real processes over stand-ins that live in one server process: two deployments on one PostgreSQL."""

WORLD = "LAKEMIRROR_FLEET_WORLD"
CLOCK = "LAKEMIRROR_FLEET_CLOCK"
"""Names in the environment: the server's address; by how many seconds a process's clock is wrong."""

REGIONS = ("us-east-1", "eu-west-1")

LEASE_SECONDS = 6.0
CALL_SECONDS = 1.5
GONE_SECONDS = 3.0
"""Everything is ten times quicker than in earnest: leases, the longest call, how long a branch must be missing."""

APART_SECONDS = 4.0
"""Two sweeps are so far apart, which are a week apart in earnest."""
SABOTAGE = "LAKEMIRROR_FLEET_SABOTAGE"
"""What is broken in all processes: a name of tests/fleet/sabotage.py."""
