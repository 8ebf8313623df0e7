"""What goes beside the bytes of versions: tags and locks, of each by its id."""
