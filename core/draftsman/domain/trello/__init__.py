"""Trello boards: configuration, card moves and comment templates."""
