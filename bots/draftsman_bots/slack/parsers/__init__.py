"""Parsers of Slack payloads and of the text of commands."""
