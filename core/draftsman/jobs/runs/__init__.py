"""Runs of jobs: claimed, saved by checkpoints, and settled."""
