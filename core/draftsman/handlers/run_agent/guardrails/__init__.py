"""Guardrails of work before it is published."""
