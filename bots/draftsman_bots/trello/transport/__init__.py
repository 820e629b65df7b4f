"""Trello on the wire: the API client, its rate limits and errors, and signatures."""
