"""Runs of agents: from the request through work, validation and policies to a signed branch."""
