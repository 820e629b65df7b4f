"""Forges: events, pull requests and follow-ups."""
