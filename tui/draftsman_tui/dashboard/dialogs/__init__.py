"""Modal dialogs that return a value."""
