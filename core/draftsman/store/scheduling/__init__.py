"""Storage of what decides when a job runs: queues, schedules and their templates."""
