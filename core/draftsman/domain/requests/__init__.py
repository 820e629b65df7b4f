"""Requests, their uniqueness, and the results of their submission. Pure."""
