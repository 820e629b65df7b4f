"""Handlers of job types: their context, and the run of agents."""
