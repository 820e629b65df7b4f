"""Transactions of deliveries."""
