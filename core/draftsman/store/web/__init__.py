"""Rows of the web inbox."""
