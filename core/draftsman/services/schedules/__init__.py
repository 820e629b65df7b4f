"""Services of templates and schedules."""
