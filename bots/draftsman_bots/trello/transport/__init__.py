"""Trello API client, rate limits, errors and webhook signatures."""
