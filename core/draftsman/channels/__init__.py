"""Channels: the places where people write and read, each a plugin of its own."""
