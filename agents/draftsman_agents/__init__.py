"""Coding agents that people have: what draftsman declares of them, and their adapters."""
