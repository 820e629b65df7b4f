"""Texts about jobs, questions, events and queues that the command line and the dashboard share."""
