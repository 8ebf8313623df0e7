"""What goes with the bytes of a replication rule's objects: headers, tags, locks, a storage class."""
