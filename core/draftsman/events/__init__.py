"""Events: the history of jobs, its archives and the invariants of the data."""
