"""Confinement of the programs that a worker starts."""
