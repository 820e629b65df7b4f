"""Queries of attention, a function each."""
