"""A server that speaks lakeFS's API and writes its committed format: what a mirror's source and destination need.

Statuses, shapes and messages are those of recorded transcripts of lakeFS 1.84. References and staging are in memory.
"""
