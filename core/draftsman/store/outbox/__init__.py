"""Storage of messages to people and systems: the outbox, its claims, and reminders."""
