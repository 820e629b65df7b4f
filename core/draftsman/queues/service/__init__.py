"""Transactions of queues."""
