"""Channels that need no bot: log, webhook and pager."""
