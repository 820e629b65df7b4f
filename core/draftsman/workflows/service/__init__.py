"""Transactions of workflows."""
