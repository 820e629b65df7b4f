"""Queries of schedules, a function each."""
