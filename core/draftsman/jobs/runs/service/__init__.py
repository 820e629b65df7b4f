"""Transactions of runs."""
