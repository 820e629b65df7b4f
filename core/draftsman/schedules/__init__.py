"""Schedules and templates of jobs."""
