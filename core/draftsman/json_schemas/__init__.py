"""Checks of values against JSON Schemas, in a child process."""
