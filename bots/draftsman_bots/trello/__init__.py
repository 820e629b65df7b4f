"""Trello: a label makes a job, a comment answers it."""
