"""Transactions of costs."""
