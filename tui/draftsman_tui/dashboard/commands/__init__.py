"""Commands of the dashboard, by theme."""
