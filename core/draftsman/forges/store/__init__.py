"""Queries of forges, a function each."""
