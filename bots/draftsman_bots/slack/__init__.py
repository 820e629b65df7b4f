"""Slack: what listens there, and what speaks there."""
