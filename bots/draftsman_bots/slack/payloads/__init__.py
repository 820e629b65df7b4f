"""Payloads of Slack, parsed. Pure."""
