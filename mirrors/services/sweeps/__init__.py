"""What people see of sweeps, and decide about them."""
