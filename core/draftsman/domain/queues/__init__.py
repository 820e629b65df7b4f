"""Queues: their order of places, reservations and limits."""
