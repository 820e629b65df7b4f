"""Trello."""
