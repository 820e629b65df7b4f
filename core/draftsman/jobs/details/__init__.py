"""Details of jobs as people see them, and why a job waits."""
