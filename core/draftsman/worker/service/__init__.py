"""Transactions of the leader."""
