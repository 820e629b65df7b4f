"""Trello: watched boards, and their cards."""
