"""Channels that need no account anywhere: a file, and signed HTTP."""
