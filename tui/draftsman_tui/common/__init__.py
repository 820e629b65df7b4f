"""What the command line and the dashboard share: output, times, parameters and texts."""
