"""SQL of people's time."""
