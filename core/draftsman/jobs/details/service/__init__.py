"""Transactions of details."""
