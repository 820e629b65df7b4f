"""Queries of the leader, a function each."""
