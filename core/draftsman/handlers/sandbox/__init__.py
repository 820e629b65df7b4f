"""Sandboxes for the programs that a worker starts."""
