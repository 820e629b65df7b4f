"""Transactions of activity."""
