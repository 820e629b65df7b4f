"""Built-in job types: their payloads and handlers."""
