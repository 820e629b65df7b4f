"""Repositories: URLs, catalog and profiles."""
