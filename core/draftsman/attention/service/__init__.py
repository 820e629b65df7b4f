"""Transactions of attention."""
