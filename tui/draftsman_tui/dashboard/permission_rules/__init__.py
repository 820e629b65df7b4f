"""Permission rules."""
