"""Queries of requests, a function each."""
