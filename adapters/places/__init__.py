"""What replication rules read, write and delete at their places in stores, on the client of `adapters/s3/`."""
