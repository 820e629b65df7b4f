"""Greetings that a person approves."""
