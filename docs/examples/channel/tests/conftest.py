"""Fixtures of draftsman: a database, people and jobs."""

pytest_plugins = ["draftsman_testing.fixtures"]
