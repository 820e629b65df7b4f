"""Transactions of events."""
