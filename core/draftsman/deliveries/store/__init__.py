"""Queries of deliveries, a function each."""
