"""Parsers of Trello actions and comments."""
