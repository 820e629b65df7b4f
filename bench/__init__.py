"""Benchmarks of draftsman and of other job queues: `make bench`."""
