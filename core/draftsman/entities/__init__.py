"""Definitions of what is listed, for the command line, the dashboard and pages."""
