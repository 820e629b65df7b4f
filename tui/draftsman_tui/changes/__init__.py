"""Changes of a job in the repository of a person."""
