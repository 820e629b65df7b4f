"""Queues: order, pauses, reservations and limits."""
