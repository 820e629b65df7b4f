"""Modules shared by the command line and the dashboard: output, times, parameters and texts."""
