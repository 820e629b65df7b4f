"""Built-in handlers: HTTP requests, webhooks, tools, notifications and language models."""
