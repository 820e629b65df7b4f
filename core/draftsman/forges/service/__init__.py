"""Transactions of forges."""
