"""Validation of the work of a run by the commands of the repository's profile."""
