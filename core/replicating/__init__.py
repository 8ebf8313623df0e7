"""What rules copy between any two places, when they try again, and what counts as equal. Pure."""
