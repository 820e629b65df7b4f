"""Traces of jobs: what each process records of a job from its request to its result."""
