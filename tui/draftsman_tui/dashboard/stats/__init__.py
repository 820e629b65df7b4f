"""Throughput of jobs."""
