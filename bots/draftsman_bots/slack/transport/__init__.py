"""Slack on the wire: HTTP, Socket Mode and the Web API."""
