"""Workflows: dependencies between jobs, groups and spawned jobs."""
