"""Requests: validated, checked and inserted as jobs."""
