"""Trello boards: labels that create jobs, and the state of cards."""
