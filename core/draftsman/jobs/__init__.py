"""Jobs: states, names, errors and retries, and all that happens to a job from request to end."""
