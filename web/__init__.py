"""HTTP without models: what all pages and the whole API share."""
