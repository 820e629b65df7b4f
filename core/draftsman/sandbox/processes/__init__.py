"""Processes of a run, which their guard kills with the worker."""
