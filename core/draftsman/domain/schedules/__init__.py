"""What decides when a job runs: templates, schedules, reservations and limits."""
