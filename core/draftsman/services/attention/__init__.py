"""Services for the time of people."""
