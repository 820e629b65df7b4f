"""Frame of the dashboard: base screen, session and refresh."""
