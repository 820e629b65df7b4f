"""Templates and schedules: definitions, times and phrases."""
