"""Repositories: catalog, profiles and their detection."""
