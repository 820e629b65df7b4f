"""Transactions of trello."""
