"""Queries of runs, a function each."""
