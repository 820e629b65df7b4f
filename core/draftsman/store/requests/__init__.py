"""Rows of requests that are not columns of their jobs."""
