"""Transactions of schedules."""
