"""The API of access below /api/v1, as lakeFS shapes it: users, groups, policies and access keys."""
