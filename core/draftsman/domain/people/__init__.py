"""People: actors, directory, permissions and quiet hours."""
