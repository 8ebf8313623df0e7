"""What rules that lead both ways go by: deletions, and objects that lose. Pure."""
