"""Transactions of people."""
