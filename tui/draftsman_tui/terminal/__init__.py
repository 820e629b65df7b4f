"""The terminal: arguments, output and times."""
