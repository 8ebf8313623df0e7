"""How stores that copy objects by themselves are doing, and why one of them has not arrived; pure."""
