"""Transactions of control."""
