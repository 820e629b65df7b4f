"""Comments, attachments and card updates: rendered and delivered to Trello."""
