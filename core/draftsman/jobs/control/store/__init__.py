"""Queries of control, a function each."""
