"""Error classes, retry policies and limits of jobs."""
