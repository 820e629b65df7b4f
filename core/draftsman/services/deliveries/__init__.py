"""Deliveries: the outbox, message contents and sending."""
