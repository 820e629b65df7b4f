"""Parts that the fake servers of Slack and Trello share."""
