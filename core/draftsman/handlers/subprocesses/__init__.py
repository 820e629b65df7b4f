"""Processes that a worker starts: pipes, guard, environment and process trees."""
