"""Commands of templates and schedules."""
