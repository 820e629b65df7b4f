"""Templates and schedules."""
