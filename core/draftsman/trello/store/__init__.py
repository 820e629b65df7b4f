"""Queries of trello, a function each."""
