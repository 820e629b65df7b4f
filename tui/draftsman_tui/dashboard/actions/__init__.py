"""Implementations of the dashboard commands."""
