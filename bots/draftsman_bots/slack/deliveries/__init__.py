"""Messages, modals and the App Home: rendered and delivered to Slack."""
