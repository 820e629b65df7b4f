"""Changes of a repository: patches, their differences and their review."""
