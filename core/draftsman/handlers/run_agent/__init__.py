"""The `run_agent` handler: agent sessions, the repository of a job, profiles and validation."""
