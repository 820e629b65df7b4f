"""Repos."""
