"""Sandboxes of runs: modes, the plan of a run, its enforcement, and the ways out."""
