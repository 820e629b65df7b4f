"""Forges over their REST APIs, and how pull requests are opened and merged there."""
