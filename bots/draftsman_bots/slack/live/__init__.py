"""Threads that show runs live: their status line, and a stream of the agent's steps."""
