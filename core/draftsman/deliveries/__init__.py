"""Deliveries: messages to people, from the outbox to a channel."""
