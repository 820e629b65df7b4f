"""Maintenance: sweeps, reminders and event archives."""
