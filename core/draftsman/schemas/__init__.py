"""JSON Schema, checked in a bounded child process."""
