"""Polling of the database: refresh of the current view, statistics and their messages."""
