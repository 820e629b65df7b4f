"""Sources of Trello actions: the webhook endpoint and the poller."""
