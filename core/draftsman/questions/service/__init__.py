"""Transactions of questions."""
