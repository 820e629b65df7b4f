"""Commands about Trello boards: configuration, webhooks and previews."""
