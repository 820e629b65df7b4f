"""Pending decisions: answers and cancels that can still be undone."""
