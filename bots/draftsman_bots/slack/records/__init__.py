"""What the database has of threads of Slack."""
