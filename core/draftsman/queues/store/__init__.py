"""Queries of queues, a function each."""
