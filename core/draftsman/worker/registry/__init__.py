"""Registered workers, and leases that a single worker holds."""
