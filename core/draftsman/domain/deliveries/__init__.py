"""Messages to people: deliveries, targets, attachments and plain text."""
