"""The process of a bot: HTTP server, health and background tasks."""
