"""Receipt of the events of forges, by webhooks and by polls."""
