"""Processes of draftsman: signals, hardening, host and child processes."""
