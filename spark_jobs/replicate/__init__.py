"""What replication rules do at stores, in the worker and in executors of Spark alike. No database."""
