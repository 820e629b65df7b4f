"""The protocol of agents: JSON lines, a class for each message."""
