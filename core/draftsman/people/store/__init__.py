"""Queries of people, a function each."""
