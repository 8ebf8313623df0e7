"""What the duties of mirrors do: manage, sense, copy records, validate, promote."""
