"""Handlers of job types: their context and its registry, and the built-in types."""
