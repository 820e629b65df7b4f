"""Queries of workflows, a function each."""
