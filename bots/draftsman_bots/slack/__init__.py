"""The Slack bot."""
