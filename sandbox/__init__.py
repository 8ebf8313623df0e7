"""Two regions in miniature: lakeFS-compatible servers, S3 by moto, and a stand-in for bucket replication between them.

Made for the demo and the tests, on loopback only. Everything lives in memory: each start begins afresh.
"""
