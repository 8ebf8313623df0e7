"""What replication rules do with single objects, in the worker and in executors of Spark alike. No database."""
