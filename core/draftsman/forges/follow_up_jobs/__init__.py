"""Jobs that follow up on pull requests, above the control of jobs."""
