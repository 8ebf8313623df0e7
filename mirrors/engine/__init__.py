"""The loops of transactional mirroring, a module each: manage, sense, copy, validate, promote."""
