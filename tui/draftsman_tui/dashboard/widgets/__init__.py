"""Widgets. They receive values and post messages; they never query."""
