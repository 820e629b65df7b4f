"""Transactions of requests."""
