"""Pages over all apps: overview, jobs, search, audit, metrics, the API's document. No models."""
