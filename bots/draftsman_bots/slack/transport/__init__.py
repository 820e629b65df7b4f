"""Transport: HTTP requests, Socket Mode and the Web API."""
